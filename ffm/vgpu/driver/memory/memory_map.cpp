/* The table of all allocations, and how GPU threads access the memory. */
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "pool.h"

namespace vgpu
{

namespace
{

struct AllocationTable {
    std::mutex mutex;
    std::map<std::uintptr_t, Allocation> allocations; /* by start */
    std::uint64_t next_id = 1;
};

AllocationTable &table()
{
    static AllocationTable *instance = new AllocationTable;
    return *instance;
}

/* The file reads and writes pages whatever their protection, as a DMA engine does (proc(5), /proc/pid/mem). */
int process_memory()
{
    static int descriptor = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    return descriptor;
}

bool read_program(std::uintptr_t address, char *destination, std::size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = pread(process_memory(), destination, bytes, static_cast<off_t>(address));
        if (done <= 0)
            return false;
        address += static_cast<std::size_t>(done);
        destination += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return true;
}

bool write_program(std::uintptr_t address, const char *source, std::size_t bytes)
{
    while (bytes > 0) {
        ssize_t done = pwrite(process_memory(), source, bytes, static_cast<off_t>(address));
        if (done <= 0)
            return false;
        address += static_cast<std::size_t>(done);
        source += done;
        bytes -= static_cast<std::size_t>(done);
    }
    return true;
}

/* With the table's mutex held. */
const Allocation *containing(std::uintptr_t address)
{
    auto &allocations = table().allocations;
    auto behind = allocations.upper_bound(address);
    if (behind == allocations.begin())
        return nullptr;
    const Allocation &candidate = std::prev(behind)->second;
    return address - candidate.address < candidate.size ? &candidate : nullptr;
}

} // namespace

void add_allocation(const Allocation &allocation)
{
    std::lock_guard<std::mutex> lock(table().mutex);
    Allocation &stored = table().allocations[allocation.address] = allocation;
    stored.id = table().next_id++;
}

bool remove_allocation(std::uintptr_t address, MemoryKind kind, Allocation &removed)
{
    std::lock_guard<std::mutex> lock(table().mutex);
    auto found = table().allocations.find(address);
    if (found == table().allocations.end() || found->second.kind != kind)
        return false;
    removed = found->second;
    table().allocations.erase(found);
    return true;
}

void release_allocations(CUcontext context)
{
    std::lock_guard<std::mutex> lock(table().mutex);
    auto &allocations = table().allocations;
    for (auto entry = allocations.begin(); entry != allocations.end();) {
        const Allocation &allocation = entry->second;
        /* Pool memory belongs to the device, not to a context. */
        if (allocation.context != context || allocation.pool) {
            ++entry;
            continue;
        }
        if (allocation.kind == MemoryKind::device)
            DeviceMemory::release(allocation.device, allocation.address, allocation.size);
        else if (allocation.kind == MemoryKind::registered)
            unmap_again(allocation);
        else
            unmap_twice(allocation);
        entry = allocations.erase(entry);
    }
}

bool find_allocation(std::uintptr_t address, Allocation &found)
{
    std::lock_guard<std::mutex> lock(table().mutex);
    const Allocation *allocation = containing(address);
    if (allocation)
        found = *allocation;
    return allocation != nullptr;
}

bool find_gpu_view(std::uintptr_t address, Allocation &found)
{
    std::lock_guard<std::mutex> lock(table().mutex);
    for (const auto &entry : table().allocations) {
        const Allocation &allocation = entry.second;
        if (address - reinterpret_cast<std::uintptr_t>(allocation.gpu_view) >= allocation.size)
            continue;
        found = allocation;
        return true;
    }
    return false;
}

GpuRange gpu_range(std::uintptr_t address)
{
    GpuRange range;
    range.program_address = address;
    range.size = SIZE_MAX;
    Allocation allocation;
    if (find_allocation(address, allocation)) {
        std::size_t offset = address - allocation.address;
        range.kind = allocation.kind;
        range.device = allocation.device;
        range.size = allocation.size - offset;
        range.gpu_view = allocation.gpu_view ? allocation.gpu_view + offset : nullptr;
    }
    return range;
}

/* Memory that was freed in stream order stays usable until that free takes effect, although its allocation is gone.
 * The pool may hand the memory out again between the two lookups, so the allocation is looked up once more. */
bool still_allocated(const GpuRange &range, std::size_t size)
{
    auto same = [&range, size] {
        const GpuRange present = gpu_range(range.program_address);
        return present.kind != MemoryKind::pageable && present.kind == range.kind &&
               present.gpu_view == range.gpu_view && size <= present.size;
    };
    return same() || (range.kind == MemoryKind::device && (pool_holds(range.program_address) || same()));
}

void translate_pointers(char *parameter, std::size_t size)
{
    for (std::size_t offset = 0; offset + sizeof(std::uintptr_t) <= size; offset += sizeof(std::uintptr_t)) {
        std::uintptr_t value;
        std::memcpy(&value, parameter + offset, sizeof value);
        GpuRange range = gpu_range(value);
        if (range.kind != MemoryKind::device && range.gpu_view)
            std::memcpy(parameter + offset, &range.gpu_view, sizeof value);
    }
}

bool transfer(const GpuRange &destination, std::size_t destination_offset, const GpuRange &source,
              std::size_t source_offset, std::size_t bytes)
{
    if (destination.gpu_view && source.gpu_view) {
        std::memmove(destination.gpu_view + destination_offset, source.gpu_view + source_offset, bytes);
        return true;
    }
    if (destination.gpu_view)
        return read_program(source.program_address + source_offset, destination.gpu_view + destination_offset, bytes);
    if (source.gpu_view)
        return write_program(destination.program_address + destination_offset, source.gpu_view + source_offset, bytes);
    char buffer[64 * 1024];
    for (std::size_t done = 0; done < bytes;) {
        std::size_t part = std::min(sizeof buffer, bytes - done);
        if (!read_program(source.program_address + source_offset + done, buffer, part) ||
            !write_program(destination.program_address + destination_offset + done, buffer, part))
            return false;
        done += part;
    }
    return true;
}

CUresult map_twice(std::size_t size, std::uintptr_t &program_address, char *&gpu_view)
{
    int descriptor = memfd_create("vgpu-pinned", MFD_CLOEXEC);
    if (descriptor < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    void *program = MAP_FAILED;
    void *gpu = MAP_FAILED;
    if (ftruncate(descriptor, static_cast<off_t>(size)) == 0) {
        program = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        gpu = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    }
    close(descriptor);
    if (program == MAP_FAILED || gpu == MAP_FAILED) {
        if (program != MAP_FAILED)
            munmap(program, size);
        if (gpu != MAP_FAILED)
            munmap(gpu, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    program_address = reinterpret_cast<std::uintptr_t>(program);
    gpu_view = static_cast<char *>(gpu);
    return CUDA_SUCCESS;
}

void unmap_twice(const Allocation &allocation)
{
    const std::size_t size = allocation.before + allocation.size + allocation.behind;
    munmap(reinterpret_cast<void *>(allocation.address - allocation.before), size);
    munmap(allocation.gpu_view - allocation.before, size);
}

char *map_again(std::uintptr_t first, std::size_t size, std::size_t offset)
{
    void *again = mremap(reinterpret_cast<void *>(first), 0, size, MREMAP_MAYMOVE);
    if (again == MAP_FAILED)
        return nullptr;
    if (mprotect(again, size, PROT_READ | PROT_WRITE) != 0)
        mprotect(again, size, PROT_READ); /* the file may be open for reading only */
    return static_cast<char *>(again) + offset;
}

void unmap_again(const Allocation &registered)
{
    if (!registered.gpu_view)
        return;
    std::uintptr_t page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    std::uintptr_t view = reinterpret_cast<std::uintptr_t>(registered.gpu_view);
    std::uintptr_t first = view / page * page;
    std::uintptr_t behind = (view + registered.size + page - 1) / page * page;
    munmap(reinterpret_cast<void *>(first), behind - first);
}

} // namespace vgpu
