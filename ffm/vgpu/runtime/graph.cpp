/* Stream capture and graphs. */
#include <cstring>

#include "runtime_api.h"

using namespace cudart;

namespace
{

CUgraph graph_of(cudaGraph_t graph)
{
    return reinterpret_cast<CUgraph>(graph);
}

CUgraphExec executable_of(cudaGraphExec_t executable)
{
    return reinterpret_cast<CUgraphExec>(executable);
}

cudaError_t instantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags)
{
    return call(legacy_driver().cuGraphInstantiateWithFlags, reinterpret_cast<CUgraphExec *>(executable),
                graph_of(graph), flags);
}

} // namespace

RUNTIME_CALL_PER_STREAM(cudaStreamBeginCapture, ptsz, (cudaStream_t stream, cudaStreamCaptureMode mode),
                        call(driver.cuStreamBeginCapture, stream_of(stream), static_cast<CUstreamCaptureMode>(mode)))
RUNTIME_CALL_PER_STREAM(cudaStreamEndCapture, ptsz, (cudaStream_t stream, cudaGraph_t *graph),
                        call(driver.cuStreamEndCapture, stream_of(stream), reinterpret_cast<CUgraph *>(graph)))

RUNTIME_CALL cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    return finish(call(legacy_driver().cuGraphCreate, reinterpret_cast<CUgraph *>(graph), flags));
}
RUNTIME_CALL cudaGraphDestroy(cudaGraph_t graph)
{
    return finish(call(legacy_driver().cuGraphDestroy, graph_of(graph)));
}
RUNTIME_CALL cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags)
{
    return finish(instantiate(executable, graph, flags));
}
RUNTIME_CALL cudaGraphInstantiateWithFlags(cudaGraphExec_t *executable, cudaGraph_t graph, unsigned long long flags)
{
    return finish(instantiate(executable, graph, flags));
}
RUNTIME_CALL cudaGraphExecDestroy(cudaGraphExec_t executable)
{
    return finish(call(legacy_driver().cuGraphExecDestroy, executable_of(executable)));
}
RUNTIME_CALL_PER_STREAM(cudaGraphLaunch, ptsz, (cudaGraphExec_t executable, cudaStream_t stream),
                        call(driver.cuGraphLaunch, executable_of(executable), stream_of(stream)))
RUNTIME_CALL_PER_STREAM(cudaGraphUpload, ptsz, (cudaGraphExec_t executable, cudaStream_t stream),
                        call(driver.cuGraphUpload, executable_of(executable), stream_of(stream)))

RUNTIME_CALL cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    return finish(
        call(legacy_driver().cuGraphGetNodes, graph_of(graph), reinterpret_cast<CUgraphNode *>(nodes), count));
}

/* The driver's edges have no data, so it reads as zeros (driver_types.h, cudaGraphEdgeData). */
RUNTIME_CALL cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                          cudaGraphEdgeData *edge_data, size_t *count)
{
    cudaError_t error = call(legacy_driver().cuGraphNodeGetDependencies, reinterpret_cast<CUgraphNode>(node),
                             reinterpret_cast<CUgraphNode *>(dependencies), count);
    if (error == cudaSuccess && edge_data && dependencies)
        std::memset(edge_data, 0, *count * sizeof *edge_data);
    return finish(error);
}

RUNTIME_CALL_PER_STREAM(cudaStreamGetCaptureInfo, ptsz,
                        (cudaStream_t stream, cudaStreamCaptureStatus *status, unsigned long long *id,
                         cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edge_data,
                         size_t *count),
                        call(driver.cuStreamGetCaptureInfo, stream_of(stream),
                             reinterpret_cast<CUstreamCaptureStatus *>(status), reinterpret_cast<cuuint64_t *>(id),
                             reinterpret_cast<CUgraph *>(graph), reinterpret_cast<const CUgraphNode **>(dependencies),
                             reinterpret_cast<const CUgraphEdgeData **>(edge_data), count))
RUNTIME_CALL cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    return finish(
        call(legacy_driver().cuThreadExchangeStreamCaptureMode, reinterpret_cast<CUstreamCaptureMode *>(mode)));
}
