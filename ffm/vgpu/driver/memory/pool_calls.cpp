/* cuMemAllocAsync, cuMemFreeAsync and cuMemPool…. */
#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <unordered_set>

#include "contexts/context.h"
#include "foundation/configuration.h"
#include "graphs/graph_memory.h"
#include "pool.h"

using namespace vgpu;

namespace
{

/* A block that was freed in a stream. That stream can reuse it at once, others when `freed` is done. */
struct FreeBlock {
    std::uintptr_t address;
    std::size_t size;
    std::uint64_t stream;
    OperationReference freed;
};

struct Pool {
    CUdevice device = 0;
    std::list<FreeBlock> free;
    std::uint64_t used = 0, used_high = 0;
    std::uint64_t reserved = 0, reserved_high = 0;
    std::uint64_t release_threshold = 0;
    int reuse[3] = {1, 1, 1}; /* event dependencies, opportunistic, internal dependencies */

    void take(std::size_t size)
    {
        used_high = std::max(used_high, used += size);
    }
};

/* The pool that a device starts with, and the one that allocations use now. */
struct DevicePools {
    Pool *standard;
    Pool *current;
};

/* The mutex guards everything. */
struct Pools {
    std::mutex mutex;
    std::map<CUdevice, DevicePools> of_device;
    std::unordered_set<Pool *> all;
};

Pools &pools()
{
    static Pools *instance = new Pools;
    return *instance;
}

/* With the mutex held: creates the device's pools when they are first used. */
DevicePools &pools_of(CUdevice device)
{
    auto [found, added] = pools().of_device.try_emplace(device);
    if (added) {
        Pool *standard = new Pool;
        standard->device = device;
        pools().all.insert(standard);
        found->second = {standard, standard};
    }
    return found->second;
}

constexpr std::size_t unit = 512;

bool usable(const FreeBlock &block, const Stream &stream)
{
    return block.stream == stream.id || block.freed->complete.load(std::memory_order_acquire);
}

/* With the mutex held: a free block of at least `size` and at most twice that, or new memory. */
CUresult take_block(Pool &pool, const Stream &stream, std::size_t size, Allocation &allocation)
{
    for (auto block = pool.free.begin(); block != pool.free.end(); ++block) {
        if (block->size < size || block->size > 2 * size || !usable(*block, stream))
            continue;
        allocation.address = block->address;
        allocation.size = block->size;
        pool.free.erase(block);
        return CUDA_SUCCESS;
    }
    CUresult result = DeviceMemory::allocate(pool.device, size, allocation.address);
    if (result != CUDA_SUCCESS)
        return result;
    allocation.size = size;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved += size);
    return CUDA_SUCCESS;
}

/* With the mutex held: frees unused blocks until at most `keep` bytes are reserved. */
bool trim(Pool &pool, std::uint64_t keep)
{
    bool any = false;
    for (auto block = pool.free.begin(); block != pool.free.end() && pool.reserved > keep;) {
        if (!block->freed->complete.load(std::memory_order_acquire)) {
            ++block;
            continue;
        }
        DeviceMemory::release(pool.device, block->address, block->size);
        pool.reserved -= block->size;
        block = pool.free.erase(block);
        any = true;
    }
    return any;
}

CUresult allocate(CUdeviceptr *address, std::size_t size, Pool *pool, CUstream handle, DefaultStream default_stream)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture)
        return capture_allocation(*stream, address, size);
    CallCost cost(microseconds(configuration().call_allocate_pool));
    std::lock_guard<std::mutex> lock(pools().mutex);
    if (!pool)
        pool = pools_of(stream->context->device).current;
    if (pools().all.count(pool) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    Allocation allocation;
    std::size_t rounded = (size + unit - 1) / unit * unit;
    result = take_block(*pool, *stream, rounded, allocation);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && trim(*pool, 0))
        result = take_block(*pool, *stream, rounded, allocation);
    if (result != CUDA_SUCCESS)
        return result;
    pool->take(allocation.size);
    allocation.kind = MemoryKind::device;
    allocation.gpu_view = reinterpret_cast<char *>(allocation.address);
    allocation.context = reinterpret_cast<CUcontext>(stream->context);
    allocation.device = pool->device;
    allocation.pool = reinterpret_cast<CUmemoryPool>(pool);
    add_allocation(allocation);
    *address = allocation.address;
    return CUDA_SUCCESS;
}

CUresult release_graph_memory(CUdeviceptr address, Stream &stream)
{
    auto freed = std::make_shared<Operation>();
    submit(stream, freed);
    return free_graph_memory(address, stream.id, freed);
}

/* Also accepts memory from cuMemAlloc, which then goes to the current pool. */
CUresult release(CUdeviceptr address, CUstream handle, DefaultStream default_stream)
{
    Stream *stream;
    CUresult result = enter(handle, default_stream, stream, Capturing::allowed);
    if (result != CUDA_SUCCESS)
        return result;
    if (stream->capture)
        return capture_free(*stream, address);
    CallCost cost(microseconds(configuration().call_free_pool));
    Allocation allocation;
    if (find_allocation(address, allocation) && allocation.graph && allocation.address == address)
        return release_graph_memory(address, *stream);
    /* Held all the time, so that the memory is always either an allocation or in a pool. */
    std::lock_guard<std::mutex> lock(pools().mutex);
    if (!remove_allocation(address, MemoryKind::device, allocation))
        return CUDA_ERROR_INVALID_VALUE;
    auto freed = std::make_shared<Operation>();
    submit(*stream, freed);
    Pool *pool = reinterpret_cast<Pool *>(allocation.pool);
    if (pools().all.count(pool)) {
        pool->used -= allocation.size;
    } else {
        pool = pools_of(allocation.device).current;
        pool->reserved += allocation.size;
    }
    pool->free.push_back({allocation.address, allocation.size, stream->id, freed});
    return CUDA_SUCCESS;
}

Pool *find_pool(CUmemoryPool handle)
{
    Pool *pool = reinterpret_cast<Pool *>(handle);
    return pools().all.count(pool) ? pool : nullptr;
}

std::uint64_t *counter(Pool &pool, CUmemPool_attribute attribute)
{
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        return &pool.release_threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        return &pool.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        return &pool.reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        return &pool.used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        return &pool.used_high;
    default:
        return nullptr;
    }
}

int *reuse_rule(Pool &pool, CUmemPool_attribute attribute)
{
    int index = attribute - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
    return index >= 0 && index < 3 ? &pool.reuse[index] : nullptr;
}

/* Returns one of the device's pools. */
CUresult pool_of_device(CUmemoryPool *handle, CUdevice device, Pool *DevicePools::*which)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    std::lock_guard<std::mutex> lock(pools().mutex);
    *handle = reinterpret_cast<CUmemoryPool>(pools_of(device).*which);
    return CUDA_SUCCESS;
}

} // namespace

bool vgpu::trim_pools(CUdevice device)
{
    std::lock_guard<std::mutex> lock(pools().mutex);
    bool any = false;
    for (Pool *pool : pools().all)
        any = (pool->device == device && trim(*pool, 0)) || any;
    return any;
}

bool vgpu::pool_holds(std::uintptr_t address)
{
    std::lock_guard<std::mutex> lock(pools().mutex);
    for (const Pool *pool : pools().all) {
        for (const FreeBlock &block : pool->free) {
            if (address - block.address < block.size)
                return true;
        }
    }
    return false;
}

void vgpu::forget_pool_allocation(const Allocation &allocation)
{
    std::lock_guard<std::mutex> lock(pools().mutex);
    if (Pool *pool = find_pool(allocation.pool)) {
        pool->used -= allocation.size;
        pool->reserved -= allocation.size;
    }
}

DRIVER_CALL_PER_STREAM(cuMemAllocAsync, ptsz, (CUdeviceptr * address, size_t size, CUstream stream),
                       allocate(address, size, nullptr, stream, default_stream))
DRIVER_CALL_PER_STREAM(cuMemAllocFromPoolAsync, ptsz,
                       (CUdeviceptr * address, size_t size, CUmemoryPool pool, CUstream stream),
                       allocate(address, size, reinterpret_cast<Pool *>(pool), stream, default_stream))
DRIVER_CALL_PER_STREAM(cuMemFreeAsync, ptsz, (CUdeviceptr address, CUstream stream),
                       release(address, stream, default_stream))

DRIVER_CALL(cuDeviceGetDefaultMemPool)(CUmemoryPool *pool, CUdevice device)
{
    return pool_of_device(pool, device, &DevicePools::standard);
}
DRIVER_CALL(cuDeviceGetMemPool)(CUmemoryPool *pool, CUdevice device)
{
    return pool_of_device(pool, device, &DevicePools::current);
}

DRIVER_CALL(cuDeviceSetMemPool)(CUdevice device, CUmemoryPool handle)
{
    std::lock_guard<std::mutex> lock(pools().mutex);
    Pool *pool = find_pool(handle);
    if (!is_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pool || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    pools_of(device).current = pool;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemPoolCreate)(CUmemoryPool *handle, const CUmemPoolProps *properties)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || !properties || properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(properties->location.id))
        return CUDA_ERROR_INVALID_VALUE;
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
        return CUDA_ERROR_NOT_SUPPORTED;
    std::lock_guard<std::mutex> lock(pools().mutex);
    Pool *pool = new Pool;
    pool->device = properties->location.id;
    pools().all.insert(pool);
    *handle = reinterpret_cast<CUmemoryPool>(pool);
    return CUDA_SUCCESS;
}

/* Memory that is still in use moves to the default pool. */
DRIVER_CALL(cuMemPoolDestroy)(CUmemoryPool handle)
{
    std::lock_guard<std::mutex> lock(pools().mutex);
    Pool *pool = find_pool(handle);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    DevicePools &others = pools_of(pool->device);
    if (pool == others.standard)
        return CUDA_ERROR_INVALID_VALUE;
    for (FreeBlock &block : pool->free) {
        others.standard->reserved += block.size;
        others.standard->free.push_back(block);
    }
    if (others.current == pool)
        others.current = others.standard;
    pools().all.erase(pool);
    delete pool;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemPoolTrimTo)(CUmemoryPool handle, size_t keep)
{
    std::lock_guard<std::mutex> lock(pools().mutex);
    Pool *pool = find_pool(handle);
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    trim(*pool, keep);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemPoolGetAttribute)(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    std::lock_guard<std::mutex> lock(pools().mutex);
    Pool *pool = find_pool(handle);
    if (!pool || !value)
        return CUDA_ERROR_INVALID_VALUE;
    if (std::uint64_t *number = counter(*pool, attribute))
        std::memcpy(value, number, sizeof *number);
    else if (int *rule = reuse_rule(*pool, attribute))
        std::memcpy(value, rule, sizeof *rule);
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* The current amounts cannot be set. The maxima can only be reset to zero. */
DRIVER_CALL(cuMemPoolSetAttribute)(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    std::lock_guard<std::mutex> lock(pools().mutex);
    Pool *pool = find_pool(handle);
    if (!pool || !value || attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT ||
        attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT)
        return CUDA_ERROR_INVALID_VALUE;
    if (std::uint64_t *number = counter(*pool, attribute)) {
        std::uint64_t wanted;
        std::memcpy(&wanted, value, sizeof wanted);
        if (number != &pool->release_threshold && wanted != 0)
            return CUDA_ERROR_INVALID_VALUE;
        *number = wanted;
    } else if (int *rule = reuse_rule(*pool, attribute)) {
        std::memcpy(rule, value, sizeof *rule);
    } else {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}
