#include "graph_memory.h"

#include <algorithm>
#include <map>

#include "contexts/context.h"

namespace vgpu
{

namespace
{

struct GraphPool {
    std::vector<std::shared_ptr<GraphBlock>> blocks;
    std::uint64_t used_high = 0, reserved_high = 0;

    /* The size of the blocks in use: those of graphs that were launched and still exist. */
    std::uint64_t used() const
    {
        std::uint64_t bytes = 0;
        for (const auto &block : blocks)
            bytes += block->allocated || !block->executables.empty() ? block->size : 0;
        return bytes;
    }

    std::uint64_t reserved() const
    {
        std::uint64_t bytes = 0;
        for (const auto &block : blocks)
            bytes += block->size;
        return bytes;
    }
};

/* The mutex guards everything, the allocations included. */
struct GraphMemory {
    std::recursive_mutex mutex; /* recursive, because forgetting one allocation may destroy it */
    std::map<CUdevice, GraphPool> pools;
    std::map<CUdeviceptr, std::weak_ptr<GraphAllocation>> allocations;
};

using Guard = std::lock_guard<std::recursive_mutex>;

GraphMemory &memory()
{
    static GraphMemory *instance = new GraphMemory;
    return *instance;
}

constexpr std::size_t unit = 512;

std::shared_ptr<GraphAllocation> find(CUdeviceptr address)
{
    auto found = memory().allocations.find(address);
    return found == memory().allocations.end() ? nullptr : found->second.lock();
}

bool done(const OperationReference &operation)
{
    return !operation || operation->complete.load(std::memory_order_acquire);
}

/* With the mutex held: finds a block that is free in the stream's order, or creates one. */
std::shared_ptr<GraphBlock> take_block(GraphPool &pool, std::size_t size, std::uint64_t stream)
{
    for (const auto &block : pool.blocks)
        if (!block->allocated && block->size >= size && block->size <= 2 * size &&
            (block->stream == stream || done(block->freed)))
            return block;
    auto block = std::make_shared<GraphBlock>();
    block->size = size;
    pool.blocks.push_back(block);
    return block;
}

void take(const std::shared_ptr<GraphAllocation> &allocation, const ExecutableGraph &executable, std::uint64_t stream)
{
    GraphPool &pool = memory().pools[allocation->device];
    allocation->block = take_block(pool, (allocation->given.bytesize + unit - 1) / unit * unit, stream);
    allocation->block->allocated = true;
    allocation->block->executables.insert(&executable);
    allocation->kept = allocation;
    pool.used_high = std::max(pool.used_high, pool.used());
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved());
}

void release(GraphAllocation &allocation, std::uint64_t stream, const OperationReference &freed)
{
    allocation.block->allocated = false;
    allocation.block->stream = stream;
    allocation.block->freed = freed;
    allocation.block = nullptr;
    const std::shared_ptr<GraphAllocation> last = std::move(allocation.kept);
}

/* Whether each node finds its memory in the right state: an allocation node finds it free, a free node finds it
 * allocated. */
bool in_turn(const Graph &graph, bool freed_first)
{
    std::map<const GraphAllocation *, bool> allocated;
    for (const auto &node : graph.nodes) {
        const AllocateNode *allocate = std::get_if<AllocateNode>(&node->work);
        const FreeNode *free = std::get_if<FreeNode>(&node->work);
        if (!allocate && !free)
            continue;
        const GraphAllocation *allocation = (allocate ? allocate->allocation : free->allocation).get();
        const bool before = allocation->block && !(allocate && freed_first);
        bool &now = allocated.try_emplace(allocation, before).first->second;
        if (now == (allocate != nullptr))
            return false;
        now = allocate != nullptr;
    }
    return true;
}

bool frees(const Graph &graph, const GraphAllocation *allocation)
{
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto &node) {
        const FreeNode *free = std::get_if<FreeNode>(&node->work);
        return free && free->allocation.get() == allocation;
    });
}

bool allocates(const Graph &graph, const GraphAllocation *allocation)
{
    return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto &node) {
        const AllocateNode *allocate = std::get_if<AllocateNode>(&node->work);
        return allocate && allocate->allocation.get() == allocation;
    });
}

} // namespace

GraphAllocation::~GraphAllocation()
{
    Allocation removed;
    const Guard lock(memory().mutex);
    memory().allocations.erase(given.dptr);
    if (find_allocation(given.dptr, removed) && removed.id == id &&
        remove_allocation(given.dptr, MemoryKind::device, removed))
        DeviceMemory::release(device, removed.address, removed.size);
}

CUresult allocate_work(CUDA_MEM_ALLOC_NODE_PARAMS &parameters, NodeWork &work)
{
    const CUmemPoolProps &pool = parameters.poolProps;
    if (parameters.bytesize == 0 || pool.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        pool.location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(pool.location.id))
        return CUDA_ERROR_INVALID_VALUE;
    if (pool.handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    Allocation reserved;
    CUresult result = DeviceMemory::allocate(pool.location.id, parameters.bytesize, reserved.address);
    if (result != CUDA_SUCCESS)
        return result;
    reserved.size = parameters.bytesize;
    reserved.kind = MemoryKind::device;
    reserved.gpu_view = reinterpret_cast<char *>(reserved.address);
    reserved.device = pool.location.id;
    reserved.graph = true;
    add_allocation(reserved);
    find_allocation(reserved.address, reserved);
    auto allocation = std::make_shared<GraphAllocation>();
    parameters.dptr = reserved.address;
    allocation->given = parameters;
    allocation->device = pool.location.id;
    allocation->id = reserved.id;
    const Guard lock(memory().mutex);
    memory().allocations[reserved.address] = allocation;
    work = AllocateNode{allocation};
    return CUDA_SUCCESS;
}

CUresult free_work(const Graph &graph, CUdeviceptr address, NodeWork &work)
{
    const Guard lock(memory().mutex);
    std::shared_ptr<GraphAllocation> allocation = find(address);
    if (!allocation || frees(graph, allocation.get()))
        return CUDA_ERROR_INVALID_VALUE;
    const FreedBy by = allocates(graph, allocation.get()) ? FreedBy::own_graph : FreedBy::another_graph;
    if (allocation->freed_by != FreedBy::nobody && (allocation->freed_by != by || by == FreedBy::own_graph))
        return CUDA_ERROR_INVALID_VALUE;
    allocation->freed_by = by;
    work = FreeNode{allocation};
    return CUDA_SUCCESS;
}

CUresult capture_allocation(Stream &stream, CUdeviceptr *address, std::size_t size)
{
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {};
    parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, stream.context->device};
    parameters.bytesize = size;
    NodeWork work;
    CUresult result = allocate_work(parameters, work);
    if (result == CUDA_SUCCESS)
        result = capture(stream, std::move(work));
    if (result == CUDA_SUCCESS)
        *address = parameters.dptr;
    return result;
}

CUresult capture_free(Stream &stream, CUdeviceptr address)
{
    NodeWork work;
    CUresult result = free_work(*stream.capture->graph, address, work);
    return result != CUDA_SUCCESS ? result : capture(stream, std::move(work));
}

CUresult take_graph_memory(const ExecutableGraph &executable, const Stream &stream, const OperationReference &end)
{
    const bool freed_first = (executable.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    const Guard lock(memory().mutex);
    if (!in_turn(*executable.graph, freed_first))
        return CUDA_ERROR_INVALID_VALUE;
    for (const auto &node : executable.graph->nodes)
        if (const AllocateNode *allocate = std::get_if<AllocateNode>(&node->work))
            if (allocate->allocation->block)
                release(*allocate->allocation, stream.id, executable.last);
    for (const auto &node : executable.graph->nodes) {
        if (const AllocateNode *allocate = std::get_if<AllocateNode>(&node->work))
            take(allocate->allocation, executable, stream.id);
        else if (const FreeNode *free = std::get_if<FreeNode>(&node->work))
            release(*free->allocation, stream.id, end);
    }
    return CUDA_SUCCESS;
}

CUresult free_graph_memory(CUdeviceptr address, std::uint64_t stream, const OperationReference &freed)
{
    const Guard lock(memory().mutex);
    std::shared_ptr<GraphAllocation> allocation = find(address);
    if (!allocation || !allocation->block || allocation->freed_by == FreedBy::own_graph)
        return CUDA_ERROR_INVALID_VALUE;
    release(*allocation, stream, freed);
    return CUDA_SUCCESS;
}

void leave_graph_memory(const ExecutableGraph &executable)
{
    const Guard lock(memory().mutex);
    for (auto &[device, pool] : memory().pools)
        for (const auto &block : pool.blocks)
            block->executables.erase(&executable);
}

namespace
{

CUresult trim(CUdevice device)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    const Guard lock(memory().mutex);
    std::vector<std::shared_ptr<GraphBlock>> &blocks = memory().pools[device].blocks;
    auto unused = [](const auto &block) { return !block->allocated && done(block->freed); };
    blocks.erase(std::remove_if(blocks.begin(), blocks.end(), unused), blocks.end());
    return CUDA_SUCCESS;
}

CUresult tell(CUdevice device, CUgraphMem_attribute attribute, cuuint64_t *value)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(memory().mutex);
    const GraphPool &pool = memory().pools[device];
    switch (attribute) {
    case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
        *value = pool.used();
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
        *value = pool.used_high;
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
        *value = pool.reserved();
        return CUDA_SUCCESS;
    case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
        *value = pool.reserved_high;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* The maxima can only be reset to zero. They then start again from the present amount. */
CUresult reset(CUdevice device, CUgraphMem_attribute attribute, const cuuint64_t *value)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!value || *value != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const Guard lock(memory().mutex);
    GraphPool &pool = memory().pools[device];
    if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
        pool.used_high = 0;
    else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
        pool.reserved_high = 0;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

} // namespace

} // namespace vgpu

DRIVER_CALL(cuDeviceGraphMemTrim)(CUdevice device)
{
    return vgpu::trim(device);
}
DRIVER_CALL(cuDeviceGetGraphMemAttribute)(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    return vgpu::tell(device, attribute, static_cast<cuuint64_t *>(value));
}
DRIVER_CALL(cuDeviceSetGraphMemAttribute)(CUdevice device, CUgraphMem_attribute attribute, void *value)
{
    return vgpu::reset(device, attribute, static_cast<const cuuint64_t *>(value));
}
