/* Stream capture and graphs. */
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
