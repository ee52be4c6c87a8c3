/* cuGraph…: executable graphs. */
#include <cstring>

#include "node_work.h"

using namespace vgpu;

namespace
{

CUresult instantiate(CUgraphExec *result, CUgraph handle)
{
    Context *context;
    CUresult state = enter(context);
    if (state != CUDA_SUCCESS)
        return state;
    std::shared_ptr<Graph> graph = find_graph(handle);
    if (!graph || !result)
        return CUDA_ERROR_INVALID_VALUE;
    *result = handle_of(std::make_unique<ExecutableGraph>(ExecutableGraph{copy_of(*graph), context, nullptr}));
    return CUDA_SUCCESS;
}

CUresult instantiate_with(CUgraphExec *result, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult done = instantiate(result, graph);
    parameters->hErrNode_out = nullptr;
    parameters->result_out = done == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return done;
}

CUresult launch_graph(CUgraphExec handle, CUstream stream_handle, DefaultStream default_stream)
{
    Stream *stream;
    CUresult result = enter(stream_handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    ExecutableGraph *executable = find_executable(handle);
    if (!executable)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return capture(*stream, ChildNode{copy_of(*executable->graph)});
    launch(*stream, *executable);
    return CUDA_SUCCESS;
}

CUresult upload(CUgraphExec handle, CUstream stream_handle, DefaultStream default_stream)
{
    Stream *stream;
    CUresult result = enter(stream_handle, default_stream, stream);
    if (result != CUDA_SUCCESS)
        return result;
    return find_executable(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Replaces the work of the node of an executable graph that was made from a node of its graph. */
CUresult replace(CUgraphExec handle, CUgraphNode original, NodeWork work)
{
    ExecutableGraph *executable = find_executable(handle);
    GraphNode *node = find_node(original);
    if (!executable || !node || node->place >= executable->graph->nodes.size())
        return CUDA_ERROR_INVALID_VALUE;
    NodeWork &present = executable->graph->nodes[node->place]->work;
    if (present.index() != work.index())
        return CUDA_ERROR_INVALID_VALUE;
    present = std::move(work);
    return CUDA_SUCCESS;
}

bool same_topology(const Graph &one, const Graph &other)
{
    if (one.nodes.size() != other.nodes.size())
        return false;
    for (std::size_t place = 0; place < one.nodes.size(); ++place) {
        const GraphNode &left = *one.nodes[place], &right = *other.nodes[place];
        if (left.work.index() != right.work.index() || left.dependencies.size() != right.dependencies.size())
            return false;
        for (std::size_t index = 0; index < left.dependencies.size(); ++index)
            if (left.dependencies[index]->place != right.dependencies[index]->place)
                return false;
    }
    return true;
}

CUresult update(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResult *outcome)
{
    ExecutableGraph *executable = find_executable(handle);
    std::shared_ptr<Graph> graph = find_graph(graph_handle);
    if (!executable || !graph || !outcome)
        return CUDA_ERROR_INVALID_VALUE;
    bool same = same_topology(*executable->graph, *graph);
    *outcome = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (!same)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    executable->graph = copy_of(*graph);
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuGraphInstantiate)(CUgraphExec *executable, CUgraph graph, CUgraphNode *, char *, size_t)
{
    return instantiate(executable, graph);
}
DRIVER_CALL(cuGraphInstantiate_v2)(CUgraphExec *executable, CUgraph graph, CUgraphNode *, char *, size_t)
{
    return instantiate(executable, graph);
}
DRIVER_CALL(cuGraphInstantiateWithFlags)(CUgraphExec *executable, CUgraph graph, unsigned long long)
{
    return instantiate(executable, graph);
}
DRIVER_CALL_PER_STREAM(cuGraphInstantiateWithParams, ptsz,
                       (CUgraphExec * executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
                       instantiate_with(executable, graph, parameters))
DRIVER_CALL(cuGraphExecDestroy)(CUgraphExec executable)
{
    return forget(executable) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_CALL_PER_STREAM(cuGraphLaunch, ptsz, (CUgraphExec executable, CUstream stream),
                       launch_graph(executable, stream, default_stream))
DRIVER_CALL_PER_STREAM(cuGraphUpload, ptsz, (CUgraphExec executable, CUstream stream),
                       upload(executable, stream, default_stream))

DRIVER_CALL(cuGraphExecMemcpyNodeSetParams)(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D *box,
                                            CUcontext)
{
    NodeWork work;
    CUresult result = copy_work(box, work);
    return result != CUDA_SUCCESS ? result : replace(executable, node, std::move(work));
}
DRIVER_CALL(cuGraphExecHostNodeSetParams)(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *call)
{
    return call && call->fn ? replace(executable, node, HostNode{*call}) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_CALL(cuGraphExecKernelNodeSetParams)(CUgraphExec executable, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    NodeWork work;
    CUresult result = kernel_work(parameters, work);
    return result != CUDA_SUCCESS ? result : replace(executable, node, std::move(work));
}
DRIVER_CALL(cuGraphExecKernelNodeSetParams_v2)(CUgraphExec executable, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    NodeWork work;
    CUresult result = kernel_work(parameters, work);
    return result != CUDA_SUCCESS ? result : replace(executable, node, std::move(work));
}
DRIVER_CALL(cuGraphExecUpdate)(CUgraphExec executable, CUgraph graph, CUgraphNode *, CUgraphExecUpdateResult *outcome)
{
    return update(executable, graph, outcome);
}
DRIVER_CALL(cuGraphExecUpdate_v2)(CUgraphExec executable, CUgraph graph, CUgraphExecUpdateResultInfo *information)
{
    if (!information)
        return CUDA_ERROR_INVALID_VALUE;
    std::memset(information, 0, sizeof *information);
    return update(executable, graph, &information->result);
}
