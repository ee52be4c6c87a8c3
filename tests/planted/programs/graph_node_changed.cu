// A node of a graph copies to pageable memory, and to other memory since it was changed; the CPU reads that or neither.
// variants: read, never
#include "planted.h"

#include <cuda.h>

constexpr int count = 64 * 1024;
constexpr size_t bytes = count * sizeof(int);

static CUDA_MEMCPY3D copy_to(int *host, int *device)
{
    CUDA_MEMCPY3D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = reinterpret_cast<CUdeviceptr>(device);
    copy.dstMemoryType = CU_MEMORYTYPE_HOST;
    copy.dstHost = host;
    copy.WidthInBytes = bytes;
    copy.Height = copy.Depth = 1;
    return copy;
}

void program()
{
    int *device = device_integers(count);
    int *first = pageable_integers(count), *second = pageable_integers(count);
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;
    CUcontext context;
    cuCtxGetCurrent(&context);
    CUDA_MEMCPY3D copy = copy_to(first, device), changed = copy_to(second, device);
    expect("graph", cuGraphCreate(&graph, 0), CUDA_SUCCESS);
    expect("node", cuGraphAddMemcpyNode(&node, graph, nullptr, 0, &copy, context), CUDA_SUCCESS);
    expect("executable", cuGraphInstantiateWithFlags(&executable, graph, 0), CUDA_SUCCESS);
    expect("change", cuGraphExecMemcpyNodeSetParams(executable, node, &changed, context), CUDA_SUCCESS);
    fill(device, count, 7);
    expect("launch", cuGraphLaunch(executable, nullptr), CUDA_SUCCESS);
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(second, count), 7 * count);
}
