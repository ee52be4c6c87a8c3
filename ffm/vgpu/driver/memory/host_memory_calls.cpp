/* Pinned and registered host memory, which the GPU can access. */
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "contexts/context.h"
#include "contexts/wait.h"
#include "foundation/configuration.h"
#include "memory.h"

using namespace vgpu;

namespace
{

CUresult allocate_host(void **pointer, std::size_t size, unsigned flags)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    constexpr unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    if (!pointer || (flags & ~known) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (size == 0) {
        *pointer = nullptr;
        return CUDA_SUCCESS;
    }
    CallCost cost(microseconds(configuration().call_allocate_host));
    Allocation allocation;
    allocation.size = size;
    allocation.kind = MemoryKind::pinned;
    allocation.flags = flags;
    allocation.context = reinterpret_cast<CUcontext>(context);
    allocation.device = context->device;
    allocation.before = allocation.behind = static_cast<std::size_t>(configuration().pinned_offset);
    result = map_twice(allocation.before + size + allocation.behind, allocation.address, allocation.gpu_view);
    if (result != CUDA_SUCCESS)
        return result;
    allocation.address += allocation.before;
    allocation.gpu_view += allocation.before;
    add_allocation(allocation);
    *pointer = reinterpret_cast<void *>(allocation.address);
    return CUDA_SUCCESS;
}

/* Whether the program may access all pages of [first, behind). NVIDIA's driver requires that for pinning them. */
bool accessible(std::uintptr_t first, std::uintptr_t behind, bool writing)
{
    std::ifstream maps("/proc/self/maps");
    for (std::string line; first < behind && std::getline(maps, line);) {
        std::uintptr_t start = 0, end = 0;
        char read = '-', write = '-';
        if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %c%c", &start, &end, &read, &write) != 4 ||
            end <= first)
            continue;
        if (start > first || read != 'r' || (writing && write != 'w'))
            return false;
        first = end;
    }
    return first >= behind;
}

CUresult register_host(void *pointer, std::size_t size, unsigned flags)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    constexpr unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                               CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    if (!pointer || size == 0 || (flags & ~known) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CallCost cost(microseconds(configuration().call_register_host));
    std::uintptr_t address = reinterpret_cast<std::uintptr_t>(pointer);
    Allocation existing;
    if (find_allocation(address, existing) || find_allocation(address + size - 1, existing))
        return existing.kind == MemoryKind::pinned ? CUDA_ERROR_INVALID_VALUE
                                                   : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    std::uintptr_t first = address / page * page;
    std::uintptr_t behind = (address + size + page - 1) / page * page;
    if (!accessible(first, behind, (flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0))
        return CUDA_ERROR_INVALID_VALUE;
    Allocation allocation;
    allocation.gpu_view = map_again(first, behind - first, address - first);
    allocation.address = address;
    allocation.size = size;
    allocation.kind = MemoryKind::registered;
    allocation.flags = flags;
    allocation.context = reinterpret_cast<CUcontext>(context);
    allocation.device = context->device;
    add_allocation(allocation);
    return CUDA_SUCCESS;
}

} // namespace

DRIVER_CALL(cuMemAllocHost_v2)(void **pointer, size_t size)
{
    return allocate_host(pointer, size, 0);
}

DRIVER_CALL(cuMemHostAlloc)(void **pointer, size_t size, unsigned int flags)
{
    return allocate_host(pointer, size, flags);
}

/* Waits for all earlier work of the context, which may still read or write the memory. */
DRIVER_CALL(cuMemFreeHost)(void *pointer)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS || !pointer)
        return result;
    std::uintptr_t address = reinterpret_cast<std::uintptr_t>(pointer);
    Allocation allocation;
    if (!find_allocation(address, allocation) || allocation.address != address || allocation.kind != MemoryKind::pinned)
        return CUDA_ERROR_INVALID_VALUE;
    wait_for_context(*context);
    CallCost cost(microseconds(configuration().call_free_host));
    if (!remove_allocation(address, MemoryKind::pinned, allocation))
        return CUDA_ERROR_INVALID_VALUE;
    empty_image_objects(allocation.gpu_view, allocation.size);
    unmap_twice(allocation);
    return context->error;
}

DRIVER_CALL(cuMemHostRegister_v2)(void *pointer, size_t size, unsigned int flags)
{
    return register_host(pointer, size, flags);
}

DRIVER_CALL(cuMemHostRegister)(void *pointer, size_t size, unsigned int flags)
{
    return register_host(pointer, size, flags);
}

DRIVER_CALL(cuMemHostUnregister)(void *pointer)
{
    Context *context;
    CUresult result = enter(context);
    if (result != CUDA_SUCCESS)
        return result;
    std::uintptr_t address = reinterpret_cast<std::uintptr_t>(pointer);
    Allocation allocation;
    if (!find_allocation(address, allocation) || allocation.address != address)
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    if (allocation.kind != MemoryKind::registered)
        return allocation.kind == MemoryKind::pinned ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    wait_for_context(*context);
    CallCost cost(microseconds(configuration().call_register_host));
    remove_allocation(address, MemoryKind::registered, allocation);
    unmap_again(allocation);
    return context->error;
}

/* With unified addressing, the device pointer of pinned memory equals the host pointer (CUDA Driver API, "Unified
 * Addressing"). */
DRIVER_CALL(cuMemHostGetDevicePointer_v2)(CUdeviceptr *device, void *host, unsigned int flags)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    GpuRange range = gpu_range(reinterpret_cast<std::uintptr_t>(host));
    if (!device || flags != 0 || (range.kind != MemoryKind::pinned && range.kind != MemoryKind::registered))
        return CUDA_ERROR_INVALID_VALUE;
    *device = reinterpret_cast<CUdeviceptr>(host);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemHostGetFlags)(unsigned int *flags, void *host)
{
    CUresult result = enter();
    if (result != CUDA_SUCCESS)
        return result;
    Allocation allocation;
    if (!flags || !find_allocation(reinterpret_cast<std::uintptr_t>(host), allocation) ||
        (allocation.kind != MemoryKind::pinned && allocation.kind != MemoryKind::registered))
        return CUDA_ERROR_INVALID_VALUE;
    /* An H200's driver does not report CU_MEMHOSTALLOC_PORTABLE for memory that it allocated itself. */
    *flags = allocation.kind == MemoryKind::registered
                 ? allocation.flags
                 : CU_MEMHOSTALLOC_DEVICEMAP | (allocation.flags & CU_MEMHOSTALLOC_WRITECOMBINED);
    return CUDA_SUCCESS;
}
