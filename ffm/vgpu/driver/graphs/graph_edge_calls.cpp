/* cuGraph…: the edges of a graph, which are dependencies between nodes, and removing nodes. */
#include <algorithm>
#include <cstring>

#include "graph.h"

using namespace vgpu;

namespace
{

struct Edge {
    GraphNode *from;
    GraphNode *to;
};

/* Refuses edges with data, such as those between overlapping kernels. */
CUresult check_data(const CUgraphEdgeData *data, std::size_t count)
{
    constexpr CUgraphEdgeData plain = {};
    for (std::size_t index = 0; data && index < count; ++index)
        if (std::memcmp(&data[index], &plain, sizeof plain) != 0)
            return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

CUresult find_edges(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                    std::size_t count, std::vector<Edge> &edges)
{
    std::shared_ptr<Graph> graph = find_graph(handle);
    std::vector<GraphNode *> first, second;
    if (!graph || !find_nodes(*graph, from, count, first) || !find_nodes(*graph, to, count, second))
        return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t index = 0; index < count; ++index) {
        if (first[index] == second[index])
            return CUDA_ERROR_INVALID_VALUE;
        edges.push_back({first[index], second[index]});
    }
    return check_data(data, count);
}

bool is_there(const Edge &edge)
{
    const std::vector<GraphNode *> &behind = edge.to->dependencies;
    return std::find(behind.begin(), behind.end(), edge.from) != behind.end();
}

/* Adding an edge that already exists is an error. */
CUresult add_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                   std::size_t count)
{
    std::vector<Edge> edges;
    CUresult result = find_edges(graph, from, to, data, count, edges);
    if (result != CUDA_SUCCESS)
        return result;
    if (std::any_of(edges.begin(), edges.end(), is_there))
        return CUDA_ERROR_INVALID_VALUE;
    for (const Edge &edge : edges)
        edge.to->dependencies.push_back(edge.from);
    return CUDA_SUCCESS;
}

/* The edges and nodes of graphs with memory nodes cannot be removed. */
CUresult remove_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
                      std::size_t count)
{
    std::vector<Edge> edges;
    CUresult result = find_edges(graph, from, to, data, count, edges);
    if (result != CUDA_SUCCESS)
        return result;
    if (!std::all_of(edges.begin(), edges.end(), is_there) || (count > 0 && has_memory(*edges.front().to->graph)))
        return CUDA_ERROR_INVALID_VALUE;
    for (const Edge &edge : edges) {
        std::vector<GraphNode *> &behind = edge.to->dependencies;
        behind.erase(std::remove(behind.begin(), behind.end(), edge.from), behind.end());
    }
    return CUDA_SUCCESS;
}

std::vector<Edge> edges_of(const Graph &graph)
{
    std::vector<Edge> edges;
    for (const auto &node : graph.nodes)
        for (GraphNode *dependency : node->dependencies)
            edges.push_back({dependency, node.get()});
    return edges;
}

/* Fills both lists, which have room for `count` edges, or only reports the count. Edges have no data. */
CUresult list_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, std::size_t *count)
{
    std::shared_ptr<Graph> graph = find_graph(handle);
    if (!graph || !count || !from != !to || (data && !from))
        return CUDA_ERROR_INVALID_VALUE;
    const std::vector<Edge> edges = edges_of(*graph);
    for (std::size_t index = 0; from && index < *count; ++index) {
        const bool any = index < edges.size();
        from[index] = any ? reinterpret_cast<CUgraphNode>(edges[index].from) : nullptr;
        to[index] = any ? reinterpret_cast<CUgraphNode>(edges[index].to) : nullptr;
        if (data)
            data[index] = {};
    }
    *count = from ? std::min(*count, edges.size()) : edges.size();
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuGraphAddDependencies)(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return add_edges(graph, from, to, nullptr, count);
}
DRIVER_CALL(cuGraphAddDependencies_v2)
(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
    return add_edges(graph, from, to, data, count);
}
DRIVER_CALL(cuGraphRemoveDependencies)(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    return remove_edges(graph, from, to, nullptr, count);
}
DRIVER_CALL(cuGraphRemoveDependencies_v2)
(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
    return remove_edges(graph, from, to, data, count);
}
DRIVER_CALL(cuGraphGetEdges)(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
    return list_edges(graph, from, to, nullptr, count);
}
DRIVER_CALL(cuGraphGetEdges_v2)(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count)
{
    return list_edges(graph, from, to, data, count);
}

DRIVER_CALL(cuGraphDestroyNode)(CUgraphNode handle)
{
    GraphNode *node = find_node(handle);
    if (!node || has_memory(*node->graph))
        return CUDA_ERROR_INVALID_VALUE;
    remove_node(*node);
    return CUDA_SUCCESS;
}
