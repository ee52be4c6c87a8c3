/* cuMemCreate, cuMemAddressReserve, cuMemMap and related calls, which manage addresses and the memory behind them
 * separately. */
#include <cstdint>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contexts/context.h"
#include "memory.h"

using namespace vgpu;

namespace
{

constexpr std::size_t granularity = std::size_t{2} << 20;

/* Memory without an address. It lives as long as a handle or a mapping refers to it. The file holds the memory, and
 * behind it the properties, for processes that import it; there, the device has the machine's number. */
struct Physical {
    int file = -1;
    std::size_t size = 0;
    CUmemAllocationProp properties{};
    bool imported = false; /* the process that created it counts it as used */

    Physical() = default;
    Physical(const Physical &) = delete;
    Physical &operator=(const Physical &) = delete;

    ~Physical()
    {
        if (!imported)
            DeviceMemory::give_back(properties.location.id, size);
        if (file >= 0)
            close(file);
    }
};

struct Mapping {
    std::size_t size = 0;
    std::shared_ptr<Physical> physical;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};

struct Handle {
    std::shared_ptr<Physical> physical;
    unsigned references = 1;
};

/* The mutex guards everything. */
struct VirtualMemory {
    std::mutex mutex;
    std::map<CUmemGenericAllocationHandle, Handle> handles;
    CUmemGenericAllocationHandle next_handle = 1;
    std::map<std::uintptr_t, std::size_t> reservations;
    std::map<std::uintptr_t, Mapping> mappings;
};

VirtualMemory &memory()
{
    static VirtualMemory *instance = new VirtualMemory;
    return *instance;
}

bool is_multiple(std::size_t value)
{
    return value % granularity == 0;
}

bool shareable(CUmemAllocationHandleType types)
{
    return types == CU_MEM_HANDLE_TYPE_NONE || types == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
}

bool valid(const CUmemAllocationProp *properties)
{
    return properties && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE && is_device(properties->location.id);
}

/* With the mutex held: the reservation that contains the range; `end()` if there is none. */
std::map<std::uintptr_t, std::size_t>::iterator reservation_of(std::uintptr_t address, std::size_t size)
{
    auto &reservations = memory().reservations;
    auto behind = reservations.upper_bound(address);
    if (behind == reservations.begin())
        return reservations.end();
    auto found = std::prev(behind);
    return address + size <= found->first + found->second ? found : reservations.end();
}

/* With the mutex held: the mappings that exactly cover the range, as [first, behind). Both are `end()` if the range
 * is not covered. */
using Mappings = std::map<std::uintptr_t, Mapping>::iterator;
std::pair<Mappings, Mappings> mappings_of(std::uintptr_t address, std::size_t size)
{
    auto &mappings = memory().mappings;
    const auto first = mappings.find(address);
    auto next = first;
    std::uintptr_t at = address;
    while (next != mappings.end() && next->first == at && at < address + size) {
        at += next->second.size;
        ++next;
    }
    return at == address + size && size > 0 ? std::pair(first, next) : std::pair(mappings.end(), mappings.end());
}

/* With the mutex held: the mapping that contains the address; `end()` if there is none. */
Mappings mapping_at(std::uintptr_t address)
{
    auto &mappings = memory().mappings;
    auto behind = mappings.upper_bound(address);
    if (behind == mappings.begin())
        return mappings.end();
    const auto found = std::prev(behind);
    return address - found->first < found->second.size ? found : mappings.end();
}

/* Waits as the documentation's "synchronous behavior for most use cases" says, then takes the lock and finds the
 * range's mappings. Mappings belong to no context, so a thread without one has nothing to wait for. */
CUresult change(std::uintptr_t address, std::size_t size, std::unique_lock<std::mutex> &lock,
                std::pair<Mappings, Mappings> &range)
{
    Context *context;
    const CUresult result = enter(context);
    if (result == CUDA_SUCCESS)
        wait_for_context(*context);
    else if (result != CUDA_ERROR_INVALID_CONTEXT)
        return result;
    lock = std::unique_lock<std::mutex>(memory().mutex);
    range = mappings_of(address, size);
    return range.first == range.second ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* With the mutex held: registers the usable parts of the reservation as allocations. Adjacent mappings become one. */
void tell_driver(std::uintptr_t start, std::size_t size)
{
    auto &mappings = memory().mappings;
    for (auto mapping = mappings.lower_bound(start); mapping != mappings.end() && mapping->first < start + size;
         ++mapping) {
        Allocation removed;
        remove_allocation(mapping->first, MemoryKind::device, removed);
    }
    Allocation range;
    for (auto mapping = mappings.lower_bound(start); mapping != mappings.end() && mapping->first < start + size;
         ++mapping) {
        if (mapping->second.access == CU_MEM_ACCESS_FLAGS_PROT_NONE)
            continue;
        const CUdevice device = mapping->second.physical->properties.location.id;
        if (range.size > 0 && range.address + range.size == mapping->first && range.device == device) {
            range.size += mapping->second.size;
            continue;
        }
        if (range.size > 0)
            add_allocation(range);
        range.address = mapping->first;
        range.size = mapping->second.size;
        range.kind = MemoryKind::device;
        range.device = device;
        range.gpu_view = reinterpret_cast<char *>(range.address);
    }
    if (range.size > 0)
        add_allocation(range);
}

} // namespace

DRIVER_CALL(cuMemGetAllocationGranularity)(size_t *result, const CUmemAllocationProp *properties,
                                           CUmemAllocationGranularity_flags)
{
    if (!result || !valid(properties))
        return CUDA_ERROR_INVALID_VALUE;
    *result = granularity;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemCreate)(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
                         unsigned long long flags)
{
    if (!handle || size == 0 || !is_multiple(size) || flags != 0 || !properties)
        return CUDA_ERROR_INVALID_VALUE;
    if (!valid(properties) || !shareable(properties->requestedHandleTypes))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!DeviceMemory::take(properties->location.id, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    auto physical = std::make_shared<Physical>();
    physical->size = size;
    physical->properties = *properties;
    physical->file = memfd_create("vgpu-physical", MFD_CLOEXEC);
    CUmemAllocationProp shared = *properties;
    shared.location.id = number_on_machine(shared.location.id);
    if (physical->file < 0 || ftruncate(physical->file, static_cast<off_t>(size)) != 0 ||
        pwrite(physical->file, &shared, sizeof shared, static_cast<off_t>(size)) != sizeof shared)
        return CUDA_ERROR_OUT_OF_MEMORY;
    std::lock_guard<std::mutex> lock(memory().mutex);
    *handle = memory().next_handle++;
    memory().handles[*handle].physical = physical;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemRelease)(CUmemGenericAllocationHandle handle)
{
    std::lock_guard<std::mutex> lock(memory().mutex);
    auto found = memory().handles.find(handle);
    if (found == memory().handles.end())
        return CUDA_ERROR_INVALID_VALUE;
    if (--found->second.references == 0)
        memory().handles.erase(found);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemRetainAllocationHandle)(CUmemGenericAllocationHandle *handle, void *address)
{
    std::lock_guard<std::mutex> lock(memory().mutex);
    const auto mapping = mapping_at(reinterpret_cast<std::uintptr_t>(address));
    if (!handle || mapping == memory().mappings.end())
        return CUDA_ERROR_INVALID_VALUE;
    for (auto &[number, known] : memory().handles) {
        if (known.physical == mapping->second.physical) {
            ++known.references;
            *handle = number;
            return CUDA_SUCCESS;
        }
    }
    *handle = memory().next_handle++;
    memory().handles[*handle].physical = mapping->second.physical;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemGetAllocationPropertiesFromHandle)(CUmemAllocationProp *properties,
                                                    CUmemGenericAllocationHandle handle)
{
    std::lock_guard<std::mutex> lock(memory().mutex);
    auto found = memory().handles.find(handle);
    if (!properties || found == memory().handles.end())
        return CUDA_ERROR_INVALID_VALUE;
    *properties = found->second.physical->properties;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemAddressReserve)(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr,
                                 unsigned long long flags)
{
    if (!address || size == 0 || !is_multiple(size) || (alignment & (alignment - 1)) != 0 || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    const std::size_t aligned = alignment > granularity ? alignment : granularity;
    void *range = mmap(nullptr, size + aligned, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(range);
    const std::uintptr_t start = (begin + aligned - 1) / aligned * aligned;
    if (start > begin)
        munmap(range, start - begin);
    munmap(reinterpret_cast<void *>(start + size), begin + aligned - start);
    std::lock_guard<std::mutex> lock(memory().mutex);
    memory().reservations[start] = size;
    *address = start;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemAddressFree)(CUdeviceptr address, size_t size)
{
    std::lock_guard<std::mutex> lock(memory().mutex);
    auto found = memory().reservations.find(address);
    const auto mapped = memory().mappings.lower_bound(address);
    if (found == memory().reservations.end() || found->second != size ||
        (mapped != memory().mappings.end() && mapped->first < address + size))
        return CUDA_ERROR_INVALID_VALUE;
    munmap(reinterpret_cast<void *>(address), size);
    memory().reservations.erase(found);
    return CUDA_SUCCESS;
}

/* Mapped memory can be used only after cuMemSetAccess. */
DRIVER_CALL(cuMemMap)(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                      unsigned long long flags)
{
    std::lock_guard<std::mutex> lock(memory().mutex);
    auto found = memory().handles.find(handle);
    if (found == memory().handles.end() || size == 0 || !is_multiple(address) || !is_multiple(size) || offset != 0 ||
        flags != 0 || size > found->second.physical->size ||
        reservation_of(address, size) == memory().reservations.end())
        return CUDA_ERROR_INVALID_VALUE;
    const auto next = memory().mappings.lower_bound(address);
    if (next != memory().mappings.end() && next->first < address + size)
        return CUDA_ERROR_INVALID_VALUE;
    if (next != memory().mappings.begin()) {
        const auto before = std::prev(next);
        if (before->first + before->second.size > address)
            return CUDA_ERROR_INVALID_VALUE;
    }
    void *place = reinterpret_cast<void *>(address);
    if (mmap(place, size, PROT_NONE, MAP_SHARED | MAP_FIXED, found->second.physical->file, 0) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    Mapping &mapping = memory().mappings[address];
    mapping.size = size;
    mapping.physical = found->second.physical;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemSetAccess)(CUdeviceptr address, size_t size, const CUmemAccessDesc *wanted, size_t count)
{
    if (!wanted || count != 1)
        return CUDA_ERROR_INVALID_VALUE;
    if (wanted->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!is_device(wanted->location.id))
        return CUDA_ERROR_INVALID_DEVICE;
    std::unique_lock<std::mutex> lock;
    std::pair<Mappings, Mappings> range;
    const CUresult result = change(address, size, lock, range);
    if (result != CUDA_SUCCESS)
        return result;
    const bool none = wanted->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
    mprotect(reinterpret_cast<void *>(address), size, none ? PROT_NONE : PROT_READ | PROT_WRITE);
    for (auto mapping = range.first; mapping != range.second; ++mapping)
        mapping->second.access = wanted->flags;
    const auto reservation = reservation_of(address, size);
    tell_driver(reservation->first, reservation->second);
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemGetAccess)(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr address)
{
    std::lock_guard<std::mutex> lock(memory().mutex);
    const auto mapping = mapping_at(address);
    if (!flags || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE || !is_device(location->id) ||
        mapping == memory().mappings.end())
        return CUDA_ERROR_INVALID_VALUE;
    *flags = mapping->second.access;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemUnmap)(CUdeviceptr address, size_t size)
{
    std::unique_lock<std::mutex> lock;
    std::pair<Mappings, Mappings> range;
    const CUresult result = change(address, size, lock, range);
    if (result != CUDA_SUCCESS)
        return result;
    const auto reservation = reservation_of(address, size);
    for (auto mapping = range.first; mapping != range.second; ++mapping)
        mapping->second.access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    tell_driver(reservation->first, reservation->second);
    mmap(reinterpret_cast<void *>(address), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
         -1, 0);
    memory().mappings.erase(range.first, range.second);
    return CUDA_SUCCESS;
}

/* Handles other than file descriptors exist only on other operating systems. */
DRIVER_CALL(cuMemExportToShareableHandle)(void *result, CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
    std::lock_guard<std::mutex> lock(memory().mutex);
    auto found = memory().handles.find(handle);
    if (!result || flags != 0 || found == memory().handles.end())
        return CUDA_ERROR_INVALID_VALUE;
    const Physical &physical = *found->second.physical;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || physical.properties.requestedHandleTypes != type)
        return CUDA_ERROR_NOT_SUPPORTED;
    const int descriptor = fcntl(physical.file, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int *>(result) = descriptor;
    return CUDA_SUCCESS;
}

DRIVER_CALL(cuMemImportFromShareableHandle)(CUmemGenericAllocationHandle *handle, void *shared,
                                            CUmemAllocationHandleType type)
{
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    auto physical = std::make_shared<Physical>();
    physical->imported = true;
    physical->file = fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(shared)), F_DUPFD_CLOEXEC, 0);
    struct stat status;
    if (physical->file < 0 || fstat(physical->file, &status) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    CUmemAllocationProp &properties = physical->properties;
    const off_t size = status.st_size - static_cast<off_t>(sizeof properties);
    if (size <= 0 || pread(physical->file, &properties, sizeof properties, size) != sizeof properties)
        return CUDA_ERROR_INVALID_VALUE;
    properties.location.id = number_in_process(properties.location.id);
    if (!valid(&properties))
        return CUDA_ERROR_INVALID_VALUE;
    physical->size = static_cast<std::size_t>(size);
    std::lock_guard<std::mutex> lock(memory().mutex);
    *handle = memory().next_handle++;
    memory().handles[*handle].physical = physical;
    return CUDA_SUCCESS;
}
