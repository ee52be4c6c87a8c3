/* cuGraph…: building graphs node by node. */
#include "node_work.h"

using namespace vgpu;

namespace
{

/* Adds a node that depends on others of the same graph. */
CUresult add(CUgraphNode *result, CUgraph handle, const CUgraphNode *dependencies, std::size_t count, NodeWork work)
{
    std::shared_ptr<Graph> graph = find_graph(handle);
    std::vector<GraphNode *> behind;
    if (!graph || !result || !find_nodes(*graph, dependencies, count, behind))
        return CUDA_ERROR_INVALID_VALUE;
    *result = reinterpret_cast<CUgraphNode>(add_node(*graph, std::move(behind), std::move(work)));
    return CUDA_SUCCESS;
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
    std::shared_ptr<Graph> found = find_graph(graph);
    return found && !found->body && forget(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRIVER_CALL(cuGraphClone)(CUgraph *clone, CUgraph handle)
{
    std::shared_ptr<Graph> graph = find_graph(handle);
    if (!graph || !clone)
        return CUDA_ERROR_INVALID_VALUE;
    if (has_memory(*graph))
        return CUDA_ERROR_NOT_SUPPORTED;
    std::shared_ptr<Graph> copy = copy_of(*graph);
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    *clone = handle_of(copy);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuGraphAddEmptyNode)(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count)
{
    return add(node, graph, dependencies, count, std::monostate());
}

DRIVER_CALL(cuGraphAddMemcpyNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_MEMCPY3D *box, CUcontext)
{
    NodeWork work;
    CUresult result = copy_work(box, work);
    return result != CUDA_SUCCESS ? result : add(node, graph, dependencies, count, std::move(work));
}

DRIVER_CALL(cuGraphAddMemsetNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
 const CUDA_MEMSET_NODE_PARAMS *parameters, CUcontext)
{
    NodeWork work;
    CUresult result = set_work(parameters, work);
    return result != CUDA_SUCCESS ? result : add(node, graph, dependencies, count, std::move(work));
}

DRIVER_CALL(cuGraphAddHostNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, const CUDA_HOST_NODE_PARAMS *call)
{
    if (!call || !call->fn)
        return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, dependencies, count, HostNode{*call});
}

DRIVER_CALL(cuGraphAddChildGraphNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUgraph child)
{
    std::shared_ptr<Graph> outer = find_graph(graph);
    NodeWork work;
    CUresult result = outer ? child_work(*outer, child, work) : CUDA_ERROR_INVALID_VALUE;
    return result != CUDA_SUCCESS ? result : add(node, graph, dependencies, count, std::move(work));
}

DRIVER_CALL(cuGraphAddEventRecordNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count, CUevent event)
{
    if (!find_event(event))
        return CUDA_ERROR_INVALID_HANDLE;
    return add(node, graph, dependencies, count, RecordNode{event});
}

DRIVER_CALL(cuGraphAddKernelNode)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
 const CUDA_KERNEL_NODE_PARAMS_v1 *parameters)
{
    return add_kernel(node, graph, dependencies, count, parameters);
}
DRIVER_CALL(cuGraphAddKernelNode_v2)
(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
 const CUDA_KERNEL_NODE_PARAMS_v2 *parameters)
{
    return add_kernel(node, graph, dependencies, count, parameters);
}
