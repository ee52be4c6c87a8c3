#include "graph.h"

#include <unordered_map>
#include <unordered_set>

#include "code/launch.h"
#include "foundation/configuration.h"
#include "memory/set.h"

namespace vgpu
{

namespace
{

struct GraphHandles {
    std::mutex mutex;
    std::unordered_map<const void *, std::shared_ptr<Graph>> graphs;
    std::unordered_map<const void *, std::unique_ptr<ExecutableGraph>> executables;
    std::unordered_set<const void *> nodes; /* of all graphs, including nested ones */
};

GraphHandles &graph_handles()
{
    static GraphHandles *instance = new GraphHandles;
    return *instance;
}

/* A piece of work of a running graph, and the indices of those that it comes after. */
struct Step {
    OperationReference operation;
    std::vector<std::size_t> behind;
    CUevent recorded = nullptr;
};

OperationReference host_operation(const CUDA_HOST_NODE_PARAMS &call)
{
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::host_function;
    operation->work = [call] {
        HostFunctionScope scope;
        call.fn(call.userData);
    };
    return operation;
}

OperationReference operation_of(Context *context, const NodeWork &work)
{
    if (const CopyNode *copy = std::get_if<CopyNode>(&work))
        return copy_operation(context, copy->destination, copy->source, copy->shape);
    if (const SetNode *set = std::get_if<SetNode>(&work))
        return set_operation(context, set->set);
    if (const KernelNode *kernel = std::get_if<KernelNode>(&work))
        return launch_operation(context, *kernel->kernel, kernel->shape, kernel->arguments->pointers());
    if (const HostNode *host = std::get_if<HostNode>(&work))
        return host_operation(host->call);
    return std::make_shared<Operation>();
}

/* Adds the steps of a graph, the first of which come after `first`; returns the index of a mark after all of them. */
std::size_t add_steps(std::vector<Step> &steps, Context *context, const Graph &graph,
                      const std::vector<std::size_t> &first)
{
    std::vector<std::size_t> ends;
    for (const auto &node : graph.nodes) {
        std::vector<std::size_t> behind;
        for (const GraphNode *dependency : node->dependencies)
            behind.push_back(ends[dependency->place]);
        if (behind.empty())
            behind = first;
        if (const ChildNode *child = std::get_if<ChildNode>(&node->work)) {
            ends.push_back(add_steps(steps, context, *child->graph, behind));
            continue;
        }
        const RecordNode *record = std::get_if<RecordNode>(&node->work);
        ends.push_back(steps.size());
        steps.push_back({operation_of(context, node->work), behind, record ? record->event : nullptr});
    }
    std::vector<std::size_t> all = ends.empty() ? first : ends;
    steps.push_back({std::make_shared<Operation>(), all});
    return steps.size() - 1;
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
}

GraphNode *add_node(Graph &graph, std::vector<GraphNode *> dependencies, NodeWork work)
{
    graph.nodes.push_back(
        std::make_unique<GraphNode>(GraphNode{&graph, graph.nodes.size(), std::move(dependencies), std::move(work)}));
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    graph_handles().nodes.insert(graph.nodes.back().get());
    return graph.nodes.back().get();
}

std::shared_ptr<Graph> copy_of(const Graph &graph)
{
    auto copy = std::make_shared<Graph>();
    for (const auto &node : graph.nodes) {
        std::vector<GraphNode *> dependencies;
        for (const GraphNode *dependency : node->dependencies)
            dependencies.push_back(copy->nodes[dependency->place].get());
        const ChildNode *child = std::get_if<ChildNode>(&node->work);
        add_node(*copy, std::move(dependencies), child ? NodeWork(ChildNode{copy_of(*child->graph)}) : node->work);
    }
    return copy;
}

void launch(Stream &stream, ExecutableGraph &executable)
{
    CallCost cost(microseconds(configuration().call_launch));
    std::vector<Step> steps;
    steps.push_back({std::make_shared<Operation>(), {}});
    add_steps(steps, stream.context, *executable.graph, {0});
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    enqueue(stream, steps.front().operation, {executable.last});
    for (std::size_t place = 1; place + 1 < steps.size(); ++place) {
        std::vector<OperationReference> predecessors;
        for (std::size_t earlier : steps[place].behind)
            predecessors.push_back(steps[earlier].operation);
        steps[place].operation->priority = stream.priority;
        steps[place].operation->device = stream.context->device;
        scheduler().submit(steps[place].operation, predecessors);
        if (steps[place].recorded)
            reinterpret_cast<Event *>(steps[place].recorded)->recorded = steps[place].operation;
    }
    std::vector<OperationReference> all;
    for (std::size_t place = 1; place + 1 < steps.size(); ++place)
        all.push_back(steps[place].operation);
    enqueue(stream, steps.back().operation, all);
    executable.last = steps.back().operation;
}

std::shared_ptr<Graph> find_graph(CUgraph handle)
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    auto found = graph_handles().graphs.find(handle);
    return found == graph_handles().graphs.end() ? nullptr : found->second;
}

GraphNode *find_node(CUgraphNode handle)
{
    std::lock_guard<std::mutex> lock(graph_handles().mutex);
    return graph_handles().nodes.count(handle) ? reinterpret_cast<GraphNode *>(handle) : nullptr;
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
