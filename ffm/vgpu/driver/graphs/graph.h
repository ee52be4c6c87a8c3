/* Graphs of work: built node by node or captured from streams, and launched as a whole.
 *
 * The program guards a graph and its nodes, as CUDA requires ("Graph object thread safety"), except for changes by the
 * capture of several streams, which the scheduler's mutex guards.
 */
#pragma once

#include <variant>

#include "code/kernel_arguments.h"
#include "code/module.h"
#include "contexts/context.h"
#include "memory/copy.h"
#include "ptx/launch_shape.h"

namespace vgpu
{

struct Condition;
struct Graph;
struct GraphAllocation;

struct CopyNode {
    CopySide destination;
    CopySide source;
    CopyShape shape;
};

struct SetNode {
    CUDA_MEMSET_NODE_PARAMS set;
};

/* A launch that check_launch accepts. */
struct KernelNode {
    KernelNode(Kernel &kernel, const LaunchShape &shape, void *const *arguments);

    Kernel *kernel;
    LaunchShape shape;
    std::shared_ptr<const KernelArguments> arguments; /* as the program gave them */
    bool updatable = false;                           /* by kernels, as the program says; no kernel here does so */
};

struct HostNode {
    CUDA_HOST_NODE_PARAMS call;
};

/* Work of a whole graph. */
struct ChildNode {
    std::shared_ptr<Graph> graph;
};

/* Records one of the program's events. */
struct RecordNode {
    CUevent event;
};

/* Memory becomes the program's, or stops being so. */
struct AllocateNode {
    std::shared_ptr<GraphAllocation> allocation;
};
struct FreeNode {
    std::shared_ptr<GraphAllocation> allocation;
};

/* Executes one of the graphs, or none, as the condition's value says. */
struct ConditionalNode {
    std::shared_ptr<Condition> condition;
    CUgraphConditionalNodeType type;
    std::vector<std::shared_ptr<Graph>> bodies;
    std::vector<CUgraph> handles; /* of these, for the program */
};

/* What a node does; nothing if it only joins others. */
using NodeWork = std::variant<std::monostate, CopyNode, SetNode, KernelNode, HostNode, ChildNode, RecordNode,
                              AllocateNode, FreeNode, ConditionalNode>;

/* What CUgraphNode points at. */
struct GraphNode {
    Graph *graph;
    std::size_t place; /* index in its graph */
    std::uint64_t id;  /* copies have the same */
    std::vector<GraphNode *> dependencies;
    NodeWork work;
};

/* What CUgraph points at. In a copy, nodes come after those that they depend on. */
struct Graph {
    Graph();
    ~Graph();
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    std::vector<std::unique_ptr<GraphNode>> nodes;
    std::vector<std::shared_ptr<Condition>> conditions; /* those of handles that were created for it */
    std::weak_ptr<Graph> instance;                      /* of a graph with memory, which has one at a time */
    bool body = false;                                  /* of a conditional node, which it belongs to */
};

/* What CUgraphExec points at. */
struct ExecutableGraph {
    std::shared_ptr<Graph> graph;
    Context *context;
    unsigned long long flags; /* those of its instantiation */
    OperationReference last;  /* each launch comes after the previous one */
};

GraphNode *add_node(Graph &graph, std::vector<GraphNode *> dependencies, NodeWork work);

/* Forgets the node and its edges. */
void remove_node(GraphNode &node);

/* A copy with the same nodes; nested graphs are copied too. Null if the nodes depend on each other in a circle. */
std::shared_ptr<Graph> copy_of(const Graph &graph);

/* Whether the predicate is true of any node of the graph, nested ones included. */
bool any_node(const Graph &graph, const std::function<bool(const NodeWork &)> &predicate);

/* Whether any of its nodes allocates or frees memory. */
bool has_memory(const Graph &graph);

/* Enqueues all the graph's work after the stream's; later work of the stream comes after it.
 *
 * Errors: CUDA_ERROR_INVALID_VALUE if it allocates what is allocated, or frees what is not. */
CUresult launch(Stream &stream, ExecutableGraph &executable);

/* The objects behind handles; null if there is none. */
std::shared_ptr<Graph> find_graph(CUgraph handle);
GraphNode *find_node(CUgraphNode handle);
ExecutableGraph *find_executable(CUgraphExec handle);

/* Whether there are such nodes in the graph; sets `found` to them. */
bool find_nodes(const Graph &graph, const CUgraphNode *handles, std::size_t count, std::vector<GraphNode *> &found);

/* Registers the graph under its handle until it is forgotten, which returns false if it was not registered. Bodies of
 * conditional nodes are registered as long as they exist. */
CUgraph handle_of(const std::shared_ptr<Graph> &graph);
bool forget(CUgraph handle);
CUgraphExec handle_of(std::unique_ptr<ExecutableGraph> executable);
bool forget(CUgraphExec handle);

/* Orders the work after what was captured from the stream before. Errors: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED. */
CUresult capture(Stream &stream, NodeWork work);

} // namespace vgpu
