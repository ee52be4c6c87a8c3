/* Launching graphs. The launch enqueues all the work, except for the bodies of conditional nodes. */
#include "code/launch.h"
#include "conditional.h"
#include "foundation/configuration.h"
#include "graph_memory.h"
#include "memory/set.h"

namespace vgpu
{

namespace
{

/* One piece of work of a launched graph, and the indices of the steps that it follows. */
struct Step {
    OperationReference operation;
    std::vector<std::size_t> behind;
    CUevent recorded = nullptr;
    bool later = false; /* the conditional node that it ends submits it */
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

OperationReference decision(Context *context, const ConditionalNode &node, const OperationReference &end);

/* Adds the steps of a graph. Its roots follow the steps in `first`. Returns the index of a mark after all of them. */
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
        if (const ConditionalNode *conditional = std::get_if<ConditionalNode>(&node->work)) {
            auto end = std::make_shared<Operation>();
            steps.push_back({decision(context, *conditional, end), behind});
            ends.push_back(steps.size());
            steps.push_back({end, {}, nullptr, true});
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

/* With the mutex held: submits the steps from `first` on. The last one, which follows all others, is left to the
 * caller. */
void submit(const std::vector<Step> &steps, std::size_t first, int priority, int device)
{
    for (std::size_t place = first; place + 1 < steps.size(); ++place) {
        if (steps[place].later)
            continue;
        std::vector<OperationReference> predecessors;
        for (std::size_t earlier : steps[place].behind)
            predecessors.push_back(steps[earlier].operation);
        steps[place].operation->priority = priority;
        steps[place].operation->device = device;
        scheduler().submit(steps[place].operation, predecessors);
        if (steps[place].recorded)
            reinterpret_cast<Event *>(steps[place].recorded)->recorded = steps[place].operation;
    }
}

std::vector<OperationReference> operations_of(const std::vector<Step> &steps)
{
    std::vector<OperationReference> all;
    for (const Step &step : steps)
        all.push_back(step.operation);
    return all;
}

/* Runs the body that the condition's value chooses. Then comes `end`, or the decision again for a loop. */
void decide(Context *context, const ConditionalNode &node, const OperationReference &end)
{
    std::shared_ptr<Graph> body;
    if (context->error == CUDA_SUCCESS)
        body = chosen_body(node, node.condition->value());
    if (!body) {
        std::lock_guard<std::mutex> lock(scheduler().mutex);
        scheduler().submit(end, {});
        return;
    }
    std::vector<Step> steps;
    steps.push_back({std::make_shared<Operation>(), {}});
    add_steps(steps, context, *body, {0});
    const bool again = node.type == CU_GRAPH_COND_TYPE_WHILE;
    const OperationReference next = again ? decision(context, node, end) : end;
    next->priority = end->priority;
    next->device = context->device;
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    scheduler().submit(steps.front().operation, {});
    submit(steps, 1, end->priority, context->device);
    std::vector<OperationReference> all = operations_of(steps);
    all.pop_back();
    scheduler().submit(next, all);
}

/* The operation that decides on the GPU, when it is the node's turn. */
OperationReference decision(Context *context, const ConditionalNode &node, const OperationReference &end)
{
    auto operation = std::make_shared<Operation>();
    operation->engine = Engine::compute;
    operation->work = [context, node, end] { decide(context, node, end); };
    return operation;
}

void add_conditions(const Graph &graph, std::vector<std::shared_ptr<Condition>> &found)
{
    for (const auto &condition : graph.conditions)
        if (condition->assigned)
            found.push_back(condition);
    for (const auto &node : graph.nodes) {
        if (const ChildNode *child = std::get_if<ChildNode>(&node->work))
            add_conditions(*child->graph, found);
        if (const ConditionalNode *conditional = std::get_if<ConditionalNode>(&node->work))
            for (const auto &body : conditional->bodies)
                add_conditions(*body, found);
    }
}

/* An operation that gives the conditions the values that they have at each launch. Without such conditions it is a
 * mere mark. */
OperationReference first_operation(const Graph &graph)
{
    std::vector<std::shared_ptr<Condition>> assigned;
    add_conditions(graph, assigned);
    auto operation = std::make_shared<Operation>();
    if (assigned.empty())
        return operation;
    operation->engine = Engine::compute;
    operation->work = [assigned] {
        for (const auto &condition : assigned)
            condition->set(condition->at_launch);
    };
    return operation;
}

} // namespace

CUresult launch(Stream &stream, ExecutableGraph &executable)
{
    CallCost cost(microseconds(configuration().call_launch));
    std::vector<Step> steps;
    steps.push_back({first_operation(*executable.graph), {}});
    steps.front().operation->device = stream.context->device;
    add_steps(steps, stream.context, *executable.graph, {0});
    const OperationReference end = steps.back().operation;
    CUresult result = take_graph_memory(executable, stream, end);
    if (result != CUDA_SUCCESS)
        return result;
    end->work = [graph = executable.graph] {}; /* keeps the graph, which may be destroyed as soon as it is launched */
    std::lock_guard<std::mutex> lock(scheduler().mutex);
    enqueue(stream, steps.front().operation, {executable.last});
    submit(steps, 1, stream.priority, stream.context->device);
    std::vector<OperationReference> all = operations_of(steps);
    all.pop_back();
    enqueue(stream, end, all);
    executable.last = end;
    return CUDA_SUCCESS;
}

} // namespace vgpu
