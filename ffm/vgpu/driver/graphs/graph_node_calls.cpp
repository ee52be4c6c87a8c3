/* cuGraphAddNode, which adds any kind of node from one description, and memory nodes. */
#include <algorithm>
#include <cstring>

#include "conditional.h"
#include "graph_memory.h"
#include "node_work.h"

using namespace vgpu;

namespace
{

CUresult event_work(CUevent event, NodeWork &work)
{
    if (!find_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    work = RecordNode{event};
    return CUDA_SUCCESS;
}

CUresult host_work(const CUDA_HOST_NODE_PARAMS_v2 &call, NodeWork &work)
{
    if (!call.fn)
        return CUDA_ERROR_INVALID_VALUE;
    work = HostNode{{call.fn, call.userData}};
    return CUDA_SUCCESS;
}

/* Allocations are described in the newer form, whose first fields are the pool's properties. */
CUresult memory_work(CUDA_MEM_ALLOC_NODE_PARAMS_v2 &parameters, NodeWork &work)
{
    static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS));
    CUDA_MEM_ALLOC_NODE_PARAMS given;
    std::memcpy(&given, &parameters, sizeof given);
    CUresult result = allocate_work(given, work);
    parameters.dptr = given.dptr;
    return result;
}

CUresult set_work(const CUDA_MEMSET_NODE_PARAMS_v2 &parameters, NodeWork &work)
{
    CUDA_MEMSET_NODE_PARAMS set;
    std::memcpy(&set, &parameters, sizeof set);
    return set_work(&set, work);
}

CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v3 &parameters, NodeWork &work)
{
    CUDA_KERNEL_NODE_PARAMS_v2 launch;
    static_assert(sizeof launch == sizeof parameters);
    std::memcpy(&launch, &parameters, sizeof launch);
    return vgpu::kernel_work(&launch, work);
}

CUresult described_work(const Graph &graph, CUgraphNodeParams &parameters, NodeWork &work)
{
    switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_work(parameters.kernel, work);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        return copy_work(&parameters.memcpy.copyParams, work);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return set_work(parameters.memset, work);
    case CU_GRAPH_NODE_TYPE_HOST:
        return host_work(parameters.host, work);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return parameters.graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE
                   ? child_work(graph, parameters.graph.graph, work)
                   : CUDA_ERROR_NOT_SUPPORTED;
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return event_work(parameters.eventRecord.event, work);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return memory_work(parameters.alloc, work);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return free_work(graph, parameters.free.dptr, work);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return conditional_work(parameters.conditional, work);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

/* Adds a node. `describe` makes its work, once all other arguments have been checked. */
template <typename Describe>
CUresult add(CUgraphNode *result, CUgraph handle, const CUgraphNode *dependencies, std::size_t count, Describe describe)
{
    CUresult valid = enter();
    if (valid != CUDA_SUCCESS)
        return valid;
    std::shared_ptr<Graph> graph = find_graph(handle);
    std::vector<GraphNode *> behind;
    NodeWork work;
    if (!graph || !result || !find_nodes(*graph, dependencies, count, behind))
        return CUDA_ERROR_INVALID_VALUE;
    valid = describe(*graph, work);
    if (valid != CUDA_SUCCESS)
        return valid;
    *result = reinterpret_cast<CUgraphNode>(add_node(*graph, std::move(behind), std::move(work)));
    return CUDA_SUCCESS;
}

CUresult add_described(CUgraphNode *result, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
                       std::size_t count, CUgraphNodeParams *parameters)
{
    if (!parameters)
        return CUDA_ERROR_INVALID_VALUE;
    if (data && std::any_of(data, data + count, [](const CUgraphEdgeData &edge) { return edge.type != 0; }))
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult added = add(result, graph, dependencies, count,
                         [&](const Graph &found, NodeWork &work) { return described_work(found, *parameters, work); });
    const GraphNode *node = added == CUDA_SUCCESS ? find_node(*result) : nullptr;
    const ConditionalNode *conditional = node ? std::get_if<ConditionalNode>(&node->work) : nullptr;
    if (conditional)
        parameters->conditional.phGraph_out = const_cast<CUgraph *>(conditional->handles.data());
    return added;
}

template <typename Node> const Node *work_of(CUgraphNode handle)
{
    const GraphNode *node = find_node(handle);
    return node ? std::get_if<Node>(&node->work) : nullptr;
}

} // namespace

DRIVER_CALL(cuGraphAddNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUgraphNodeParams *parameters)
{
    return add_described(node, graph, dependencies, nullptr, count, parameters);
}
DRIVER_CALL(cuGraphAddNode_v2)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data, size_t count,
 CUgraphNodeParams *parameters)
{
    return add_described(node, graph, dependencies, data, count, parameters);
}

DRIVER_CALL(cuGraphAddMemAllocNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
 CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    return add(node, graph, dependencies, count, [&](const Graph &, NodeWork &work) {
        return parameters ? allocate_work(*parameters, work) : CUDA_ERROR_INVALID_VALUE;
    });
}
DRIVER_CALL(cuGraphAddMemFreeNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUdeviceptr address)
{
    return add(node, graph, dependencies, count,
               [&](const Graph &found, NodeWork &work) { return free_work(found, address, work); });
}

DRIVER_CALL(cuGraphMemAllocNodeGetParams)(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    const AllocateNode *allocate = work_of<AllocateNode>(node);
    if (!allocate || !parameters)
        return CUDA_ERROR_INVALID_VALUE;
    *parameters = allocate->allocation->given;
    return CUDA_SUCCESS;
}
DRIVER_CALL(cuGraphMemFreeNodeGetParams)(CUgraphNode node, CUdeviceptr *address)
{
    const FreeNode *free = work_of<FreeNode>(node);
    if (!free || !address)
        return CUDA_ERROR_INVALID_VALUE;
    *address = free->allocation->given.dptr;
    return CUDA_SUCCESS;
}
