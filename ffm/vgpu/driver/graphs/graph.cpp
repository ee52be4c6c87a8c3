#include "graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace vgpu
{

namespace
{

struct GraphHandles {
    std::mutex mutex;
    std::unordered_map<const void *, std::shared_ptr<Graph>> graphs;
    std::unordered_map<const void *, std::weak_ptr<Graph>> bodies; /* the bodies of conditional nodes */
    std::uint64_t next_node = 1;
    std::unordered_map<const void *, std::unique_ptr<ExecutableGraph>> executables;
    std::unordered_set<const void *> nodes; /* of all graphs, nested ones included */
};

GraphHandles &graph_handles()
{
    static GraphHandles *instance = new GraphHandles;
    return *instance;
}

} // namespace

KernelNode::KernelNode(Kernel &launched, const LaunchShape &threads, void *const *values)
    : kernel(&launched), shape(threads),
      arguments(std::make_shared<KernelArguments>(*launched.entry, values, Pointers::as_given))
{
}

Graph::Graph() = default;

Graph::~Graph()
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    for (const auto &node : nodes)
        graph_handles().nodes.erase(node.get());
    graph_handles().bodies.erase(this);
}

GraphNode *add_node(Graph &graph, std::vector<GraphNode *> dependencies, NodeWork work)
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    graph.nodes.push_back(std::make_unique<GraphNode>(
        GraphNode{&graph, graph.nodes.size(), graph_handles().next_node++, std::move(dependencies), std::move(work)}));
    graph_handles().nodes.insert(graph.nodes.back().get());
    return graph.nodes.back().get();
}

void remove_node(GraphNode &node)
{
    Graph &graph = *node.graph;
    for (const auto &other : graph.nodes) {
        std::vector<GraphNode *> &behind = other->dependencies;
        behind.erase(std::remove(behind.begin(), behind.end(), &node), behind.end());
    }
    for (std::size_t later = node.place + 1; later < graph.nodes.size(); ++later)
        graph.nodes[later]->place = later - 1;
    std::unique_ptr<GraphNode> gone = std::move(graph.nodes[node.place]); /* destroyed after the mutex is released */
    graph.nodes.erase(graph.nodes.begin() + static_cast<std::ptrdiff_t>(node.place));
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    graph_handles().nodes.erase(gone.get());
}

namespace
{

/* The nodes in dependency order. Nodes in a cycle, and nodes that depend on one, are left out. */
std::vector<const GraphNode *> in_order(const Graph &graph)
{
    std::vector<std::size_t> missing;
    std::vector<std::vector<const GraphNode *>> dependents(graph.nodes.size());
    std::vector<const GraphNode *> order;
    for (const auto &node : graph.nodes) {
        missing.push_back(node->dependencies.size());
        for (const GraphNode *dependency : node->dependencies)
            dependents[dependency->place].push_back(node.get());
    }
    for (const auto &node : graph.nodes)
        if (missing[node->place] == 0)
            order.push_back(node.get());
    for (std::size_t place = 0; place < order.size(); ++place)
        for (const GraphNode *node : dependents[order[place]->place])
            if (--missing[node->place] == 0)
                order.push_back(node);
    return order;
}

/* Copies the graphs that are nested in a node. Returns false if one of them has a cycle. */
bool copy_nested(NodeWork &work)
{
    if (ChildNode *child = std::get_if<ChildNode>(&work)) {
        child->graph = copy_of(*child->graph);
        return child->graph != nullptr;
    }
    if (ConditionalNode *conditional = std::get_if<ConditionalNode>(&work)) {
        conditional->handles.clear();
        for (std::shared_ptr<Graph> &body : conditional->bodies) {
            body = copy_of(*body);
            if (!body)
                return false;
        }
    }
    return true;
}

} // namespace

std::shared_ptr<Graph> copy_of(const Graph &graph)
{
    auto copy = std::make_shared<Graph>();
    std::vector<GraphNode *> copies(graph.nodes.size());
    const std::vector<const GraphNode *> order = in_order(graph);
    if (order.size() != graph.nodes.size())
        return nullptr;
    copy->conditions = graph.conditions;
    for (const GraphNode *node : order) {
        std::vector<GraphNode *> dependencies;
        for (const GraphNode *dependency : node->dependencies)
            dependencies.push_back(copies[dependency->place]);
        NodeWork work = node->work;
        if (!copy_nested(work))
            return nullptr;
        copies[node->place] = add_node(*copy, std::move(dependencies), std::move(work));
        copies[node->place]->id = node->id;
    }
    return copy;
}

bool any_node(const Graph &graph, const std::function<bool(const NodeWork &)> &predicate)
{
    for (const auto &node : graph.nodes) {
        const ChildNode *child = std::get_if<ChildNode>(&node->work);
        const ConditionalNode *conditional = std::get_if<ConditionalNode>(&node->work);
        if (predicate(node->work) || (child && any_node(*child->graph, predicate)))
            return true;
        for (std::size_t body = 0; conditional && body < conditional->bodies.size(); ++body)
            if (any_node(*conditional->bodies[body], predicate))
                return true;
    }
    return false;
}

bool has_memory(const Graph &graph)
{
    return any_node(graph, [](const NodeWork &work) {
        return std::holds_alternative<AllocateNode>(work) || std::holds_alternative<FreeNode>(work);
    });
}

std::shared_ptr<Graph> find_graph(CUgraph handle)
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    auto found = graph_handles().graphs.find(handle);
    auto body = graph_handles().bodies.find(handle);
    if (body != graph_handles().bodies.end())
        return body->second.lock();
    return found == graph_handles().graphs.end() ? nullptr : found->second;
}

GraphNode *find_node(CUgraphNode handle)
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    return graph_handles().nodes.count(handle) ? reinterpret_cast<GraphNode *>(handle) : nullptr;
}

bool find_nodes(const Graph &graph, const CUgraphNode *handles, std::size_t count, std::vector<GraphNode *> &found)
{
    if (count > 0 && !handles)
        return false;
    for (std::size_t index = 0; index < count; ++index) {
        GraphNode *node = find_node(handles[index]);
        if (!node || node->graph != &graph)
            return false;
        found.push_back(node);
    }
    return true;
}

ExecutableGraph *find_executable(CUgraphExec handle)
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    auto found = graph_handles().executables.find(handle);
    return found == graph_handles().executables.end() ? nullptr : found->second.get();
}

CUgraph handle_of(const std::shared_ptr<Graph> &graph)
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    if (graph->body)
        graph_handles().bodies[graph.get()] = graph;
    else
        graph_handles().graphs[graph.get()] = graph;
    return reinterpret_cast<CUgraph>(graph.get());
}

bool forget(CUgraph handle)
{
    std::shared_ptr<Graph> graph = find_graph(handle); /* destroyed after the mutex is released */
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    return graph_handles().graphs.erase(handle) != 0;
}

CUgraphExec handle_of(std::unique_ptr<ExecutableGraph> executable)
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    const ExecutableGraph *handle = executable.get();
    graph_handles().executables[handle] = std::move(executable);
    return reinterpret_cast<CUgraphExec>(const_cast<ExecutableGraph *>(handle));
}

bool forget(CUgraphExec handle)
{
    std::unique_ptr<ExecutableGraph> gone;
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    auto found = graph_handles().executables.find(handle);
    if (found == graph_handles().executables.end())
        return false;
    gone = std::move(found->second);
    graph_handles().executables.erase(found);
    return true;
}

} // namespace vgpu
