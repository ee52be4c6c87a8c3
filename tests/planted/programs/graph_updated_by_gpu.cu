// A kernel of a graph writes the device's memory. Kernels may update its node, or may launch the graph, and could then
// write the mapped memory that the CPU reads.
// variants: plain, updatable, launchable
#include "planted.h"

#include <cuda.h>

constexpr int count = 1024;

static CUgraph captured_fill(int *data, cudaStream_t stream)
{
    cudaGraph_t graph;
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    fill(data, count, 7, stream);
    check(cudaStreamEndCapture(stream, &graph));
    return reinterpret_cast<CUgraph>(graph);
}

static void make_updatable(CUgraph graph)
{
    CUgraphNode node;
    size_t nodes = 1;
    CUlaunchAttributeValue value = {};
    value.deviceUpdatableKernelNode.deviceUpdatable = 1;
    expect("node", cuGraphGetNodes(graph, &node, &nodes), CUDA_SUCCESS);
    expect("attribute", cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE, &value),
           CUDA_SUCCESS);
}

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count), *mapped = pinned_integers(count, 3);
    CUgraph graph = captured_fill(device, stream);
    CUgraphExec executable;
    if (variant("updatable"))
        make_updatable(graph);
    const unsigned long long flags = variant("launchable") ? CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH : 0;
    expect("executable", cuGraphInstantiateWithFlags(&executable, graph, flags), CUDA_SUCCESS);
    expect("launch", cuGraphLaunch(executable, stream), CUDA_SUCCESS);
    // sync: plain unnecessary, updatable required (undecidable), launchable required (undecidable)
    WAIT(last, cudaStreamSynchronize(stream));
    expect("sum", sum(mapped, count), 3 * count);
}
