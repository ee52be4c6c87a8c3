/* Device memory: cuMemAlloc and its relatives, and queries about addresses. */
#include "contexts/context.h"
#include "contexts/wait.h"
#include "foundation/configuration.h"
#include "graphs/graph_memory.h"
#include "memory.h"
#include "pool.h"

using namespace vgpu;

namespace
{

/* Rows of pitched memory start at multiples of this. cudaDeviceProp::texturePitchAlignment is 32, but current
 * devices return multiples of 512. */
constexpr std::size_t pitch_alignment = 512;

CUresult allocate(CUdeviceptr *address, std::size_t size)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || size == 0)
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_allocate));
    Allocation allocation;
    result = DeviceMemory::allocate(context->device, size, allocation.address);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && trim_pools(context->device))
        result = DeviceMemory::allocate(context->device, size, allocation.address);
    if (result != CUDA_SUCCESS)
        return result;
    allocation.size = size;
    allocation.kind = MemoryKind::device;
    allocation.gpu_view = reinterpret_cast<char *>(allocation.address);
    allocation.context = reinterpret_cast<CUcontext>(context);
    allocation.device = context->device;
    add_allocation(allocation);
    *address = allocation.address;
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuMemAlloc_v2)(CUdeviceptr *address, size_t size)
{
    return allocate(address, size);
}

DRIVER_CALL(cuMemAllocPitch_v2)(CUdeviceptr *address, size_t *pitch, size_t width, size_t height,
                                unsigned int element_size)
{
    if (!pitch || (element_size != 4 && element_size != 8 && element_size != 16))
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
    return allocate(address, *pitch * height);
}

DRIVER_CALL(cuMemAllocManaged)(CUdeviceptr *address, size_t size, unsigned int flags)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || size == 0 || (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST))
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_allocate));
    Allocation allocation;
    allocation.size = size;
    allocation.kind = MemoryKind::managed;
    allocation.flags = flags;
    allocation.context = reinterpret_cast<CUcontext>(context);
    allocation.device = context->device;
    result = map_twice(size, allocation.address, allocation.gpu_view);
    if (result != CUDA_SUCCESS)
        return result;
    add_allocation(allocation);
    *address = allocation.address;
    return CUDA_SUCCESS;
}

/* Waits for all earlier work of the calling context, and of the context that owns the memory, since that work may
 * use it. */
DRIVER_CALL(cuMemFree_v2)(CUdeviceptr address)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS || address == 0)
        return result;
    Allocation allocation;
    if (!find_allocation(address, allocation) || allocation.address != address ||
        (allocation.kind != MemoryKind::device && allocation.kind != MemoryKind::managed))
        return CUDA_ERROR_INVALID_VALUE;
    if (allocation.kind == MemoryKind::device && !DeviceMemory::owns(allocation.device, address))
        return CUDA_ERROR_INVALID_VALUE; /* mapped memory, or another process's */
    wait_for_context(*context);
    if (Context *owner = find_context(allocation.context); owner && owner != context)
        wait_for_context(*owner);
    CallCost cost(microseconds(configuration().call_free));
    if (allocation.graph)
        return free_graph_memory(address, 0, nullptr);
    Allocation removed;
    if (!remove_allocation(address, allocation.kind, removed))
        return CUDA_ERROR_INVALID_VALUE;
    if (removed.pool)
        forget_pool_allocation(removed);
    if (removed.kind == MemoryKind::managed)
        unmap_twice(removed);
    else
        DeviceMemory::release(removed.device, removed.address, removed.size);
    return context->error;
}

DRIVER_CALL(cuMemGetInfo_v2)(size_t *free, size_t *total)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    if (free)
        *free = DeviceMemory::total() - DeviceMemory::used(context->device);
    if (total)
        *total = DeviceMemory::total();
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemGetAddressRange_v2)(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    Allocation allocation;
    if (!find_allocation(address, allocation))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = allocation.address;
    if (size)
        *size = allocation.size;
    return CUDA_SUCCESS;
}
