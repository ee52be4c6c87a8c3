/* cuGraph…: queries about the contents of a graph. */
#include <algorithm>
#include <cstring>
#include <iterator>

#include "graph.h"

using namespace vgpu;

namespace
{

template <typename Parameters> CUresult kernel_parameters(CUgraphNode handle, Parameters *parameters)
{
    GraphNode *node = find_node(handle);
    const KernelNode *kernel = node ? std::get_if<KernelNode>(&node->work) : nullptr;
    if (!kernel || !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    std::memset(parameters, 0, sizeof *parameters);
    parameters->func = reinterpret_cast<CUfunction>(kernel->kernel);
    parameters->gridDimX = kernel->shape.grid[0];
    parameters->gridDimY = kernel->shape.grid[1];
    parameters->gridDimZ = kernel->shape.grid[2];
    parameters->blockDimX = kernel->shape.block[0];
    parameters->blockDimY = kernel->shape.block[1];
    parameters->blockDimZ = kernel->shape.block[2];
    parameters->sharedMemBytes = static_cast<unsigned int>(kernel->shape.dynamic_shared);
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
    constexpr CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_EMPTY,        CU_GRAPH_NODE_TYPE_MEMCPY,
                                         CU_GRAPH_NODE_TYPE_MEMSET,       CU_GRAPH_NODE_TYPE_KERNEL,
                                         CU_GRAPH_NODE_TYPE_HOST,         CU_GRAPH_NODE_TYPE_GRAPH,
                                         CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_MEM_ALLOC,
                                         CU_GRAPH_NODE_TYPE_MEM_FREE,     CU_GRAPH_NODE_TYPE_CONDITIONAL};
    static_assert(std::size(types) == std::variant_size_v<NodeWork>);
    return types[work.index()];
}

/* Fills `nodes`, which has room for `count`. If `nodes` is null, only reports the count. */
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

std::vector<GraphNode *> dependencies_of(const GraphNode &node)
{
    return node.dependencies;
}

std::vector<GraphNode *> dependents_of(const GraphNode &node)
{
    std::vector<GraphNode *> found;
    for (const auto &other : node.graph->nodes)
        if (std::find(other->dependencies.begin(), other->dependencies.end(), &node) != other->dependencies.end())
            found.push_back(other.get());
    return found;
}

/* Edges have no data, so it is filled with zeros. */
CUresult list_neighbours(CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data, std::size_t *count,
                         std::vector<GraphNode *> (*neighbours)(const GraphNode &))
{
    const GraphNode *node = find_node(handle);
    if (!node || (data && !nodes))
        return CUDA_ERROR_INVALID_VALUE;
    if (data && count)
        std::fill(data, data + *count, CUgraphEdgeData{});
    return list(neighbours(*node), nodes, count);
}

} // namespace

DRIVER_CALL(cuGraphGetNodes)(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, false);
}
DRIVER_CALL(cuGraphGetRootNodes)(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    return list_nodes(graph, nodes, count, true);
}
DRIVER_CALL(cuGraphNodeGetDependencies)(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return list_neighbours(node, nodes, nullptr, count, dependencies_of);
}
DRIVER_CALL(cuGraphNodeGetDependencies_v2)(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
    return list_neighbours(node, nodes, data, count, dependencies_of);
}
DRIVER_CALL(cuGraphNodeGetDependentNodes)(CUgraphNode node, CUgraphNode *nodes, size_t *count)
{
    return list_neighbours(node, nodes, nullptr, count, dependents_of);
}
DRIVER_CALL(cuGraphNodeGetDependentNodes_v2)(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count)
{
    return list_neighbours(node, nodes, data, count, dependents_of);
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

/* A kernel node's only attribute lets kernels change the node. It cannot be revoked. */
DRIVER_CALL(cuGraphKernelNodeGetAttribute)
(CUgraphNode handle, CUkernelNodeAttrID attribute, CUkernelNodeAttrValue *value)
{
    GraphNode *node = find_node(handle);
    const KernelNode *kernel = node ? std::get_if<KernelNode>(&node->work) : nullptr;
    if (!kernel || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return CUDA_ERROR_NOT_SUPPORTED;
    std::memset(value, 0, sizeof *value);
    value->deviceUpdatableKernelNode.deviceUpdatable = kernel->updatable;
    return CUDA_SUCCESS;
}
DRIVER_CALL(cuGraphKernelNodeSetAttribute)
(CUgraphNode handle, CUkernelNodeAttrID attribute, const CUkernelNodeAttrValue *value)
{
    GraphNode *node = find_node(handle);
    KernelNode *kernel = node ? std::get_if<KernelNode>(&node->work) : nullptr;
    if (!kernel || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (attribute != CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (value->deviceUpdatableKernelNode.deviceUpdatable != 1)
        return CUDA_ERROR_INVALID_VALUE;
    kernel->updatable = true;
    return CUDA_SUCCESS;
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

/* The node still owns the graph. The graph gets a handle when it is first asked for. */
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
