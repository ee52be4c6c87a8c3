/* cuGraph…: executable graphs. */
#include <algorithm>
#include <cstring>

#include "conditional.h"
#include "graph_memory.h"
#include "node_work.h"

using namespace vgpu;

namespace
{

/* Returns CUDA_ERROR_NOT_SUPPORTED for a graph with memory nodes that is already instantiated, and for a conditional
 * body with nodes that are not allowed there. */
CUresult check_instance(const Graph &graph)
{
    if (has_memory(graph) && !graph.instance.expired())
        return CUDA_ERROR_NOT_SUPPORTED;
    return any_node(graph, [](const NodeWork &work) { return !bodies_are_allowed(work); }) ? CUDA_ERROR_NOT_SUPPORTED
                                                                                           : CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec *result, CUgraph handle, unsigned long long flags)
{
    Context *context;
    CUresult state = enter(context);
    if (state != CUDA_SUCCESS)
        return state;
    std::shared_ptr<Graph> graph = find_graph(handle);
    if (!graph || !result)
        return CUDA_ERROR_INVALID_VALUE;
    state = check_instance(*graph);
    if (state != CUDA_SUCCESS)
        return state;
    std::shared_ptr<Graph> instance = copy_of(*graph);
    if (!instance)
        return CUDA_ERROR_INVALID_VALUE;
    graph->instance = instance;
    *result = handle_of(std::make_unique<ExecutableGraph>(ExecutableGraph{instance, context, flags, nullptr}));
    return CUDA_SUCCESS;
}

CUresult instantiate_with(CUgraphExec *result, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult done = instantiate(result, graph, parameters->flags);
    parameters->hErrNode_out = nullptr;
    parameters->result_out = done == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return done;
}

CUresult destroy(CUgraphExec handle)
{
    const ExecutableGraph *executable = find_executable(handle);
    if (!executable)
        return CUDA_ERROR_INVALID_VALUE;
    leave_graph_memory(*executable);
    forget(handle);
    return CUDA_SUCCESS;
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
    if (!stream->capture)
        return launch(*stream, *executable);
    return has_memory(*executable->graph) ? refuse_capture(*stream)
                                          : capture(*stream, ChildNode{copy_of(*executable->graph)});
}

CUresult upload(CUgraphExec handle, CUstream stream_handle, DefaultStream default_stream)
{
    Stream *stream;
    CUresult result = enter(stream_handle, default_stream, stream);
    if (result != CUDA_SUCCESS)
        return result;
    return find_executable(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The node of an executable graph that was made from `original`; null if there is none. */
GraphNode *counterpart(const ExecutableGraph &executable, const GraphNode &original)
{
    const auto &nodes = executable.graph->nodes;
    auto same = [&](const auto &node) { return node->id == original.id; };
    if (original.place < nodes.size() && same(nodes[original.place]))
        return nodes[original.place].get();
    auto found = std::find_if(nodes.begin(), nodes.end(), same);
    return found == nodes.end() ? nullptr : found->get();
}

/* Replaces the work of the node that was made from `original`. */
CUresult replace(CUgraphExec handle, CUgraphNode original, NodeWork work)
{
    ExecutableGraph *executable = find_executable(handle);
    GraphNode *node = find_node(original);
    node = executable && node ? counterpart(*executable, *node) : nullptr;
    if (!node || node->work.index() != work.index())
        return CUDA_ERROR_INVALID_VALUE;
    node->work = std::move(work);
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
    std::shared_ptr<Graph> copy = copy_of(*graph);
    bool same = copy && same_topology(*executable->graph, *copy);
    *outcome = !same               ? CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED
               : has_memory(*copy) ? CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED
                                   : CU_GRAPH_EXEC_UPDATE_SUCCESS;
    if (*outcome != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    for (std::size_t place = 0; place < copy->nodes.size(); ++place)
        copy->nodes[place]->id = executable->graph->nodes[place]->id;
    executable->graph = copy;
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuGraphInstantiate)(CUgraphExec *executable, CUgraph graph, CUgraphNode *, char *, size_t)
{
    return instantiate(executable, graph, 0);
}
DRIVER_CALL(cuGraphInstantiate_v2)(CUgraphExec *executable, CUgraph graph, CUgraphNode *, char *, size_t)
{
    return instantiate(executable, graph, 0);
}
DRIVER_CALL(cuGraphInstantiateWithFlags)(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    return instantiate(executable, graph, flags);
}
DRIVER_CALL_PER_STREAM(cuGraphInstantiateWithParams, ptsz,
                       (CUgraphExec * executable, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *parameters),
                       instantiate_with(executable, graph, parameters))
DRIVER_CALL(cuGraphExecDestroy)(CUgraphExec executable)
{
    return destroy(executable);
}
DRIVER_CALL_PER_STREAM(cuGraphLaunch, ptsz, (CUgraphExec executable, CUstream stream),
                       launch_graph(executable, stream, default_stream))
DRIVER_CALL_PER_STREAM(cuGraphUpload, ptsz, (CUgraphExec executable, CUstream stream),
                       upload(executable, stream, default_stream))

DRIVER_CALL(cuGraphExecMemcpyNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_MEMCPY3D *box, CUcontext)
{
    NodeWork work;
    CUresult result = copy_work(box, work);
    return result != CUDA_SUCCESS ? result : replace(executable, node, std::move(work));
}
DRIVER_CALL(cuGraphExecHostNodeSetParams)(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *call)
{
    return call && call->fn ? replace(executable, node, HostNode{*call}) : CUDA_ERROR_INVALID_VALUE;
}
DRIVER_CALL(cuGraphExecKernelNodeSetParams)
(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    NodeWork work;
    CUresult result = kernel_work(parameters, work);
    return result != CUDA_SUCCESS ? result : replace(executable, node, std::move(work));
}
DRIVER_CALL(cuGraphExecKernelNodeSetParams_v2)
(CUgraphExec executable, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
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
