/* cuGraph…: building graphs, asking what is in them, and launching them. */
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "configuration.h"
#include "graph.h"
#include "launch.h"
#include "set.h"

using namespace vgpu;

namespace
{

/* Adds a node behind others of the same graph. */
CUresult add(CUgraphNode *result, CUgraph handle, const CUgraphNode *dependencies, std::size_t count, NodeWork work)
{
    std::shared_ptr<Graph> graph = find_graph(handle);
    if (!graph || !result || (count > 0 && !dependencies))
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode *> behind;
    for (std::size_t index = 0; index < count; ++index) {
        GraphNode *node = find_node(dependencies[index]);
        if (!node || node->graph != graph.get())
            return CUDA_ERROR_INVALID_VALUE;
        behind.push_back(node);
    }
    *result = reinterpret_cast<CUgraphNode>(add_node(*graph, std::move(behind), std::move(work)));
    return CUDA_SUCCESS;
}

CUresult copy_node(const CUDA_MEMCPY3D *box, CopyNode &node)
{
    if (!box)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = describe(*box, node.destination, node.source, node.shape);
    return result != CUDA_SUCCESS ? result : check_copy(node.destination, node.source, node.shape);
}

/* The launch that a node describes; `parameters` may be of either version. */
template <typename Parameters> CUresult kernel_work(const Parameters *parameters, NodeWork &work)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    const void *function = parameters->func;
    if constexpr (std::is_same_v<Parameters, CUDA_KERNEL_NODE_PARAMS_v2>)
        function = function ? function : parameters->kern;
    Kernel *kernel = find_kernel(function);
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (parameters->extra)
        return CUDA_ERROR_NOT_SUPPORTED;
    const std::uint32_t grid[3] = {parameters->gridDimX, parameters->gridDimY, parameters->gridDimZ};
    const std::uint32_t block[3] = {parameters->blockDimX, parameters->blockDimY, parameters->blockDimZ};
    CUresult result = check_launch(*kernel, grid, block, parameters->kernelParams);
    if (result == CUDA_SUCCESS)
        work = KernelNode(*kernel, grid, block, parameters->kernelParams);
    return result;
}

template <typename Parameters>
CUresult add_kernel(CUgraphNode *result, CUgraph graph, const CUgraphNode *dependencies, std::size_t count,
                    const Parameters *parameters)
{
    NodeWork work;
    CUresult valid = enter();
    if (valid == CUDA_SUCCESS)
        valid = kernel_work(parameters, work);
    return valid != CUDA_SUCCESS ? valid : add(result, graph, dependencies, count, std::move(work));
}

template <typename Parameters> CUresult kernel_parameters(CUgraphNode handle, Parameters *parameters)
{
    GraphNode *node = find_node(handle);
    const KernelNode *kernel = node ? std::get_if<KernelNode>(&node->work) : nullptr;
    if (!kernel || !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    std::memset(parameters, 0, sizeof *parameters);
    parameters->func = reinterpret_cast<CUfunction>(kernel->kernel);
    parameters->gridDimX = kernel->grid[0];
    parameters->gridDimY = kernel->grid[1];
    parameters->gridDimZ = kernel->grid[2];
    parameters->blockDimX = kernel->block[0];
    parameters->blockDimY = kernel->block[1];
    parameters->blockDimZ = kernel->block[2];
    parameters->kernelParams = const_cast<void **>(kernel->arguments->pointers());
    return CUDA_SUCCESS;
}

CUmemorytype type_of(const CopySide &side)
{
    bool on_device = side.range.kind == MemoryKind::device || side.range.kind == MemoryKind::managed;
    return on_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

std::size_t rows_of(const CopySide &side, const CopyShape &shape)
{
    return side.row_pitch ? side.slice_pitch / side.row_pitch : shape.height;
}

CUresult copy_parameters(CUgraphNode handle, CUDA_MEMCPY3D *box)
{
    GraphNode *node = find_node(handle);
    const CopyNode *copy = node ? std::get_if<CopyNode>(&node->work) : nullptr;
    if (!copy || !box)
        return CUDA_ERROR_INVALID_VALUE;
    std::memset(box, 0, sizeof *box);
    box->srcMemoryType = type_of(copy->source);
    box->srcHost = reinterpret_cast<const void *>(copy->source.range.program_address);
    box->srcDevice = copy->source.range.program_address;
    box->srcPitch = copy->source.row_pitch;
    box->srcHeight = rows_of(copy->source, copy->shape);
    box->dstMemoryType = type_of(copy->destination);
    box->dstHost = reinterpret_cast<void *>(copy->destination.range.program_address);
    box->dstDevice = copy->destination.range.program_address;
    box->dstPitch = copy->destination.row_pitch;
    box->dstHeight = rows_of(copy->destination, copy->shape);
    box->WidthInBytes = copy->shape.width;
    box->Height = copy->shape.height;
    box->Depth = copy->shape.depth;
    return CUDA_SUCCESS;
}

CUgraphNodeType type_of(const NodeWork &work)
{
    constexpr CUgraphNodeType types[] = {
        CU_GRAPH_NODE_TYPE_EMPTY, CU_GRAPH_NODE_TYPE_MEMCPY, CU_GRAPH_NODE_TYPE_MEMSET,      CU_GRAPH_NODE_TYPE_KERNEL,
        CU_GRAPH_NODE_TYPE_HOST,  CU_GRAPH_NODE_TYPE_GRAPH,  CU_GRAPH_NODE_TYPE_EVENT_RECORD};
    return types[work.index()];
}

/* Fills `nodes`, whose room is in `count`, or only `count` without them. */
CUresult list(const std::vector<GraphNode *> &found, CUgraphNode *nodes, std::size_t *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    if (nodes) {
        std::size_t room = *count;
        for (std::size_t index = 0; index < room; ++index)
            nodes[index] = index < found.size() ? reinterpret_cast<CUgraphNode>(found[index]) : nullptr;
        *count = std::min(room, found.size());
    } else {
        *count = found.size();
    }
    return CUDA_SUCCESS;
}

CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, std::size_t *count, bool roots_only)
{
    std::shared_ptr<Graph> graph = find_graph(handle);
    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    std::vector<GraphNode *> found;
    for (const auto &node : graph->nodes) {
        if (!roots_only || node->dependencies.empty())
            found.push_back(node.get());
    }
    return list(found, nodes, count);
}

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

/* The node of an executable graph that was made from a node of its graph. */
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

DRIVER_CALL(cuGraphCreate)(CUgraph *graph, unsigned int flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!graph || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = handle_of(std::make_shared<Graph>());
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuGraphDestroy)(CUgraph graph)
{
    return forget(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_CALL(cuGraphClone)(CUgraph *clone, CUgraph handle)
{
    std::shared_ptr<Graph> graph = find_graph(handle);
    if (!graph || !clone)
        return CUDA_ERROR_INVALID_VALUE;
    *clone = handle_of(copy_of(*graph));
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuGraphAddEmptyNode)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    return add(node, graph, dependencies, count, std::monostate());
}

DRIVER_CALL(cuGraphAddMemcpyNode)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                  const CUDA_MEMCPY3D *box, CUcontext)
{
    CopyNode copy;
    CUresult result = copy_node(box, copy);
    return result != CUDA_SUCCESS ? result : add(node, graph, dependencies, count, copy);
}

DRIVER_CALL(cuGraphAddMemsetNode)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                  const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMSET_NODE_PARAMS set = *parameters;
    CUresult result = check_set(set);
    return result != CUDA_SUCCESS ? result : add(node, graph, dependencies, count, SetNode{set});
}

DRIVER_CALL(cuGraphAddHostNode)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                const CUDA_HOST_NODE_PARAMS *call)
{
    if (!call || !call->fn)
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, dependencies, count, HostNode{*call});
}

DRIVER_CALL(cuGraphAddChildGraphNode)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                      CUgraph child)
{
    std::shared_ptr<Graph> inner = find_graph(child);
    if (!inner || child == graph)
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, dependencies, count, ChildNode{copy_of(*inner)});
}

DRIVER_CALL(cuGraphAddEventRecordNode)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                       CUevent event)
{
    if (!find_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    return add(node, graph, dependencies, count, RecordNode{event});
}

DRIVER_CALL(cuGraphAddKernelNode)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                  const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    return add_kernel(node, graph, dependencies, count, parameters);
}
DRIVER_CALL(cuGraphAddKernelNode_v2)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                                     const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    return add_kernel(node, graph, dependencies, count, parameters);
}

DRIVER_CALL(cuGraphGetNodes)(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, false);
}
DRIVER_CALL(cuGraphGetRootNodes)(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, true);
}
DRIVER_CALL(cuGraphNodeGetDependencies)(CUgraphNode handle, CUgraphNode *nodes, size_t *count)
{
    GraphNode *node = find_node(handle);
    return node ? list(node->dependencies, nodes, count) : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_CALL(cuGraphNodeGetType)(CUgraphNode handle, CUgraphNodeType *type)
{
    GraphNode *node = find_node(handle);
    if (!node || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = type_of(node->work);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuGraphMemcpyNodeGetParams)(CUgraphNode node, CUDA_MEMCPY3D *box)
{
    return copy_parameters(node, box);
}
DRIVER_CALL(cuGraphKernelNodeGetParams)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    return kernel_parameters(node, parameters);
}
DRIVER_CALL(cuGraphKernelNodeGetParams_v2)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    return kernel_parameters(node, parameters);
}

DRIVER_CALL(cuGraphMemsetNodeGetParams)(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS *parameters)
{
    GraphNode *node = find_node(handle);
    const SetNode *set = node ? std::get_if<SetNode>(&node->work) : nullptr;
    if (!set || !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    *parameters = set->set;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuGraphHostNodeGetParams)(CUgraphNode handle, CUDA_HOST_NODE_PARAMS *call)
{
    GraphNode *node = find_node(handle);
    const HostNode *host = node ? std::get_if<HostNode>(&node->work) : nullptr;
    if (!host || !call)
        return CUDA_ERROR_INVALID_VALUE;
    *call = host->call;
    return CUDA_SUCCESS;
}

/* The graph stays the node's: it is known under its handle from the first question on. */
DRIVER_CALL(cuGraphChildGraphNodeGetGraph)(CUgraphNode handle, CUgraph *graph)
{
    GraphNode *node = find_node(handle);
    const ChildNode *child = node ? std::get_if<ChildNode>(&node->work) : nullptr;
    if (!child || !graph)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = handle_of(child->graph);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuGraphEventRecordNodeGetEvent)(CUgraphNode handle, CUevent *event)
{
    GraphNode *node = find_node(handle);
    const RecordNode *record = node ? std::get_if<RecordNode>(&node->work) : nullptr;
    if (!record || !event)
        return CUDA_ERROR_INVALID_VALUE;
    *event = record->event;
    return CUDA_SUCCESS;
}

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
    CopyNode copy;
    CUresult result = copy_node(box, copy);
    return result != CUDA_SUCCESS ? result : replace(executable, node, copy);
}
DRIVER_CALL(cuGraphExecHostNodeSetParams)(CUgraphExec executable, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *call)
{
    return call && call->fn ? replace(executable, node, HostNode{*call}) : CUDA_ERROR_INVALID_VALUE;
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
