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

struct Graph;

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
    bool updatable = false;                           /* by kernels, according to the program; no kernel here does it */
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

/* What a node does; nothing if it only joins others. */
using NodeWork = std::variant<std::monostate, CopyNode, SetNode, KernelNode, HostNode, ChildNode, RecordNode>;

/* What CUgraphNode points at. */
struct GraphNode {
    Graph *graph;
    std::size_t place; /* index in its graph */
    std::vector<GraphNode *> dependencies;
    NodeWork work;
};

/* What CUgraph points at. Nodes come after those that they depend on. */
struct Graph {
    Graph();
    ~Graph();
    Graph(const Graph &) = delete;
    Graph &operator=(const Graph &) = delete;

    std::vector<std::unique_ptr<GraphNode>> nodes;
};

/* What CUgraphExec points at. */
struct ExecutableGraph {
    std::shared_ptr<Graph> graph;
    Context *context;
    OperationReference last; /* each launch comes after the previous one */
};

GraphNode *add_node(Graph &graph, std::vector<GraphNode *> dependencies, NodeWork work);

/* A copy with the same nodes; nested graphs are copied too. */
std::shared_ptr<Graph> copy_of(const Graph &graph);

/* Enqueues all the graph's work after the stream's; later work of the stream comes after it. */
void launch(Stream &stream, ExecutableGraph &executable);

/* The objects behind handles; null if there is none. */
std::shared_ptr<Graph> find_graph(CUgraph handle);
GraphNode *find_node(CUgraphNode handle);
ExecutableGraph *find_executable(CUgraphExec handle);

/* Registers the graph under its handle until it is forgotten, which returns false if it was not registered. */
CUgraph handle_of(const std::shared_ptr<Graph> &graph);
bool forget(CUgraph handle);
CUgraphExec handle_of(std::unique_ptr<ExecutableGraph> executable);
bool forget(CUgraphExec handle);

/* Orders the work after what was captured from the stream before. Errors: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED. */
CUresult capture(Stream &stream, NodeWork work);

} // namespace vgpu
