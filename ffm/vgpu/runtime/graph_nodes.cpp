/* Nodes that programs add to graphs, and their updates in executable graphs. */
#include "registry.h"

using namespace cudart;

namespace
{

CUgraphNode node_of(cudaGraphNode_t node)
{
    return reinterpret_cast<CUgraphNode>(node);
}

CUgraphExec executable_of(cudaGraphExec_t executable)
{
    return reinterpret_cast<CUgraphExec>(executable);
}

/* Adds a node through the driver's function for its kind. `special` are that function's own arguments. */
template <typename Entry, typename... Special>
cudaError_t add(Entry entry, cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                std::size_t count, Special... special)
{
    return call(entry, reinterpret_cast<CUgraphNode *>(node), reinterpret_cast<CUgraph>(graph),
                reinterpret_cast<const CUgraphNode *>(dependencies), count, special...);
}

cudaError_t context_here(CUcontext &context)
{
    return call(legacy_driver().cuCtxGetCurrent, &context);
}

cudaError_t describe(CUDA_KERNEL_NODE_PARAMS &launch, const cudaKernelNodeParams *given)
{
    cudaError_t error = given ? ready() : cudaErrorInvalidValue;
    launch = {};
    if (error == cudaSuccess)
        error = find_kernel(given->func, launch.kern);
    if (error != cudaSuccess)
        return error;
    launch.gridDimX = given->gridDim.x;
    launch.gridDimY = given->gridDim.y;
    launch.gridDimZ = given->gridDim.z;
    launch.blockDimX = given->blockDim.x;
    launch.blockDimY = given->blockDim.y;
    launch.blockDimZ = given->blockDim.z;
    launch.sharedMemBytes = given->sharedMemBytes;
    launch.kernelParams = given->kernelParams;
    launch.extra = given->extra;
    return cudaSuccess;
}

cudaError_t describe(CUDA_MEMCPY3D &box, void *destination, const void *source, std::size_t bytes, cudaMemcpyKind kind)
{
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    const bool unified = kind == cudaMemcpyDefault;
    box = {};
    box.dstMemoryType = unified ? CU_MEMORYTYPE_UNIFIED : to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    box.dstHost = destination;
    box.dstDevice = device(destination);
    box.srcMemoryType = unified ? CU_MEMORYTYPE_UNIFIED : from_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    box.srcHost = source;
    box.srcDevice = device(source);
    box.srcPitch = box.dstPitch = box.WidthInBytes = bytes;
    box.srcHeight = box.dstHeight = box.Height = box.Depth = 1;
    return cudaSuccess;
}

CUDA_HOST_NODE_PARAMS described(const cudaHostNodeParams &given)
{
    CUDA_HOST_NODE_PARAMS call = {};
    call.fn = given.fn;
    call.userData = given.userData;
    return call;
}

} // namespace

RUNTIME_CALL cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                   size_t count)
{
    return finish(add(legacy_driver().cuGraphAddEmptyNode, node, graph, dependencies, count));
}

RUNTIME_CALL cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                    size_t count, const cudaKernelNodeParams *given)
{
    CUDA_KERNEL_NODE_PARAMS launch;
    cudaError_t error = describe(launch, given);
    return finish(error != cudaSuccess
                      ? error
                      : add(legacy_driver().cuGraphAddKernelNode, node, graph, dependencies, count, &launch));
}

RUNTIME_CALL cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                      size_t count, void *destination, const void *source, size_t bytes,
                                      cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D box;
    CUcontext context;
    cudaError_t error = describe(box, destination, source, bytes, kind);
    if (error == cudaSuccess)
        error = context_here(context);
    return finish(error != cudaSuccess
                      ? error
                      : add(legacy_driver().cuGraphAddMemcpyNode, node, graph, dependencies, count, &box, context));
}

RUNTIME_CALL cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
                                  size_t count, const cudaHostNodeParams *given)
{
    if (!given)
        return finish(cudaErrorInvalidValue);
    const CUDA_HOST_NODE_PARAMS function = described(*given);
    return finish(add(legacy_driver().cuGraphAddHostNode, node, graph, dependencies, count, &function));
}

RUNTIME_CALL cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                              const cudaKernelNodeParams *given)
{
    CUDA_KERNEL_NODE_PARAMS launch;
    cudaError_t error = describe(launch, given);
    return finish(error != cudaSuccess ? error
                                       : call(legacy_driver().cuGraphExecKernelNodeSetParams, executable_of(executable),
                                              node_of(node), &launch));
}

RUNTIME_CALL cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void *destination,
                                                const void *source, size_t bytes, cudaMemcpyKind kind)
{
    CUDA_MEMCPY3D box;
    CUcontext context;
    cudaError_t error = describe(box, destination, source, bytes, kind);
    if (error == cudaSuccess)
        error = context_here(context);
    return finish(error != cudaSuccess ? error
                                       : call(legacy_driver().cuGraphExecMemcpyNodeSetParams, executable_of(executable),
                                              node_of(node), &box, context));
}

RUNTIME_CALL cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                            const cudaHostNodeParams *given)
{
    if (!given)
        return finish(cudaErrorInvalidValue);
    const CUDA_HOST_NODE_PARAMS function = described(*given);
    return finish(
        call(legacy_driver().cuGraphExecHostNodeSetParams, executable_of(executable), node_of(node), &function));
}

/* The driver and the runtime use the same description of the outcome (driver_types.h, cuda.h). */
RUNTIME_CALL cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *outcome)
{
    static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo));
    return finish(call(legacy_driver().cuGraphExecUpdate, executable_of(executable), reinterpret_cast<CUgraph>(graph),
                       reinterpret_cast<CUgraphExecUpdateResultInfo *>(outcome)));
}
