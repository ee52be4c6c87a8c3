#include "conditional.h"

#include <algorithm>
#include <map>

namespace vgpu
{

namespace
{

struct Conditions {
    std::mutex mutex;
    std::map<CUgraphConditionalHandle, std::weak_ptr<Condition>> all;
};

Conditions &conditions()
{
    static Conditions *instance = new Conditions;
    return *instance;
}

CUresult create(CUgraphConditionalHandle *handle, CUgraph graph_handle, CUcontext context_handle, unsigned at_launch,
                unsigned flags)
{
    Context *current;
    CUresult result = enter(current);
    if (result != CUDA_SUCCESS)
        return result;
    std::shared_ptr<Graph> graph = find_graph(graph_handle);
    const Context *context = context_handle ? find_context(context_handle) : current;
    if (!handle || !graph || !context || (flags & ~static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT)) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    std::uintptr_t address;
    result = DeviceMemory::allocate(context->device, sizeof(std::uint32_t), address);
    if (result != CUDA_SUCCESS)
        return result;
    auto condition = std::make_shared<Condition>(context->device, address);
    condition->at_launch = at_launch;
    condition->assigned = flags == CU_GRAPH_COND_ASSIGN_DEFAULT;
    graph->conditions.push_back(condition);
    *handle = address;
    std::lock_guard<std::mutex> lock(conditions().mutex);
    conditions().all[address] = condition;
    return CUDA_SUCCESS;
}

bool fits(CUgraphConditionalNodeType type, unsigned size)
{
    switch (type) {
    case CU_GRAPH_COND_TYPE_IF:
        return size == 1 || size == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
        return size == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return size > 0;
    default:
        return false;
    }
}

/* CUDA does not allow allocations, event records and host functions there. */
bool allowed_in_bodies(const NodeWork &work)
{
    return std::holds_alternative<std::monostate>(work) || std::holds_alternative<CopyNode>(work) ||
           std::holds_alternative<SetNode>(work) || std::holds_alternative<KernelNode>(work) ||
           std::holds_alternative<ChildNode>(work) || std::holds_alternative<ConditionalNode>(work);
}

} // namespace

Condition::Condition(CUdevice where, std::uintptr_t handle) : device(where), address(handle)
{
    set(0);
}

Condition::~Condition()
{
    {
        std::lock_guard<std::mutex> lock(conditions().mutex);
        conditions().all.erase(address);
    }
    DeviceMemory::release(device, address, sizeof(std::uint32_t));
}

std::uint32_t Condition::value() const
{
    return __atomic_load_n(reinterpret_cast<const std::uint32_t *>(address), __ATOMIC_ACQUIRE);
}

void Condition::set(std::uint32_t value)
{
    __atomic_store_n(reinterpret_cast<std::uint32_t *>(address), value, __ATOMIC_RELEASE);
}

std::shared_ptr<Condition> find_condition(CUgraphConditionalHandle handle)
{
    std::lock_guard<std::mutex> lock(conditions().mutex);
    auto found = conditions().all.find(handle);
    return found == conditions().all.end() ? nullptr : found->second.lock();
}

CUresult conditional_work(const CUDA_CONDITIONAL_NODE_PARAMS &parameters, NodeWork &work)
{
    std::shared_ptr<Condition> condition = find_condition(parameters.handle);
    if (!condition || condition->used || !fits(parameters.type, parameters.size))
        return CUDA_ERROR_INVALID_VALUE;
    condition->used = true;
    ConditionalNode node = {condition, parameters.type, {}, {}};
    for (unsigned place = 0; place < parameters.size; ++place) {
        node.bodies.push_back(std::make_shared<Graph>());
        node.bodies.back()->body = true;
        node.handles.push_back(handle_of(node.bodies.back()));
    }
    work = std::move(node);
    return CUDA_SUCCESS;
}

bool bodies_are_allowed(const NodeWork &work)
{
    const ConditionalNode *node = std::get_if<ConditionalNode>(&work);
    auto foreign = [](const NodeWork &inner) { return !allowed_in_bodies(inner); };
    return !node || std::none_of(node->bodies.begin(), node->bodies.end(),
                                 [&](const std::shared_ptr<Graph> &body) { return any_node(*body, foreign); });
}

std::shared_ptr<Graph> chosen_body(const ConditionalNode &node, std::uint32_t value)
{
    std::size_t place = value;
    if (node.type == CU_GRAPH_COND_TYPE_IF)
        place = value != 0 ? 0 : 1;
    else if (node.type == CU_GRAPH_COND_TYPE_WHILE)
        place = value != 0 ? 0 : node.bodies.size();
    return place < node.bodies.size() ? node.bodies[place] : nullptr;
}

} // namespace vgpu

DRIVER_CALL(cuGraphConditionalHandleCreate)
(CUgraphConditionalHandle *handle, CUgraph graph, CUcontext context, unsigned int at_launch, unsigned int flags)
{
    return vgpu::create(handle, graph, context, at_launch, flags);
}
