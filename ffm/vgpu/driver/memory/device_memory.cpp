/* The devices' own memory. Each device has one reserved range of addresses. This machine provides the pages when
 * they are used. */
#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "foundation/configuration.h"
#include "memory.h"

namespace vgpu
{

namespace
{

/* Allocations start at multiples of at least 256 bytes (CUDA C++ Programming Guide, "Device Memory Accesses").
 * Current drivers use 512. */
constexpr std::size_t alignment = 512;
constexpr std::size_t commit_unit = std::size_t{2} << 20;
/* Larger blocks give their pages back to the machine when they are freed. */
constexpr std::size_t give_back_from = std::size_t{64} << 20;

constexpr std::size_t page = 4096;
constexpr std::size_t pages_at_a_time = 512;

/* Asking which pages were written takes about 9 us. Clearing this much memory takes 4 us if it was written before,
 * and 120 us if it was not. */
constexpr std::size_t least_examined = 64 * page;

/* Bits of an entry of /proc/self/pagemap (proc(5)). A private page that nobody wrote has neither. */
constexpr std::uint64_t page_present = std::uint64_t{1} << 63, page_swapped = std::uint64_t{1} << 62;

/* Clears `count` pages, except those that nobody has written. `count` is at most `pages_at_a_time`. */
void clear_pages(int map, char *first, std::size_t count)
{
    std::uint64_t entries[pages_at_a_time];
    auto place = static_cast<off_t>(reinterpret_cast<std::uintptr_t>(first) / page * sizeof *entries);
    auto length = static_cast<ssize_t>(count * sizeof *entries);
    if (map < 0 || pread(map, entries, static_cast<std::size_t>(length), place) != length) {
        std::memset(first, 0, count * page);
        return;
    }
    for (std::size_t index = 0; index < count;) {
        std::size_t begin = index;
        while (index < count && entries[index] & (page_present | page_swapped))
            ++index;
        if (index > begin)
            std::memset(first + begin * page, 0, (index - begin) * page);
        else
            ++index;
    }
}

struct Arena {
    std::mutex mutex;
    std::uintptr_t base = 0;
    std::size_t size = 0;
    std::size_t used = 0;
    std::map<std::size_t, std::size_t> holes; /* offset to size */
    std::vector<bool> committed;              /* for each commit_unit */
    std::vector<std::uint32_t> allocations;   /* likewise: the number of allocations in it */
    std::vector<std::uint8_t> present;        /* likewise: whether it has any */
    int file = -1;                            /* shared with other processes; as long as the range */
    std::vector<bool> shared;                 /* likewise: whether it lies in `file` */

    /* Reserves the addresses. Returns false if this machine does not provide them. */
    bool reserve()
    {
        if (base)
            return true;
        size = DeviceMemory::total();
        void *range = mmap(nullptr, size + commit_unit, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range == MAP_FAILED)
            return false;
        base = (reinterpret_cast<std::uintptr_t>(range) + commit_unit - 1) / commit_unit * commit_unit;
        holes[0] = size;
        committed.assign(size / commit_unit, false);
        allocations.assign(size / commit_unit, 0);
        present.assign(size / commit_unit, 0);
        return true;
    }

    void count(std::size_t offset, std::size_t length, bool added)
    {
        for (std::size_t unit = offset / commit_unit; unit <= (offset + length - 1) / commit_unit; ++unit) {
            allocations[unit] += added ? 1 : -1u;
            present[unit] = allocations[unit] > 0;
        }
    }

    bool commit(std::size_t offset, std::size_t length)
    {
        for (std::size_t unit = offset / commit_unit; unit <= (offset + length - 1) / commit_unit; ++unit) {
            if (committed[unit])
                continue;
            if (mprotect(reinterpret_cast<void *>(base + unit * commit_unit), commit_unit, PROT_READ | PROT_WRITE) != 0)
                return false;
            committed[unit] = true;
        }
        return true;
    }

    /* Moves a unit into the shared file. It keeps its address and its bytes. */
    bool share(std::size_t unit)
    {
        char *place = reinterpret_cast<char *>(base + unit * commit_unit);
        off_t offset = static_cast<off_t>(unit * commit_unit);
        if (shared[unit])
            return true;
        if (pwrite(file, place, commit_unit, offset) != static_cast<ssize_t>(commit_unit) ||
            mmap(place, commit_unit, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, offset) == MAP_FAILED)
            return false;
        shared[unit] = true;
        return true;
    }
};

Arena &arena(CUdevice device)
{
    static std::mutex *mutex = new std::mutex;
    static auto *arenas = new std::map<CUdevice, Arena>;
    std::lock_guard<std::mutex> lock(*mutex);
    return (*arenas)[device];
}

std::size_t rounded(std::size_t size)
{
    return (size + alignment - 1) / alignment * alignment;
}

} // namespace

CUresult DeviceMemory::allocate(CUdevice device, std::size_t size, std::uintptr_t &address)
{
    Arena &memory = arena(device);
    std::lock_guard<std::mutex> lock(memory.mutex);
    std::size_t length = rounded(size);
    if (!memory.reserve() || length > memory.size - memory.used)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (auto hole = memory.holes.begin(); hole != memory.holes.end(); ++hole) {
        if (hole->second < length)
            continue;
        std::size_t offset = hole->first;
        if (!memory.commit(offset, length))
            return CUDA_ERROR_OUT_OF_MEMORY;
        std::size_t rest = hole->second - length;
        memory.holes.erase(hole);
        if (rest > 0)
            memory.holes[offset + length] = rest;
        memory.used += length;
        memory.count(offset, length, true);
        address = memory.base + offset;
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

void DeviceMemory::release(CUdevice device, std::uintptr_t address, std::size_t size)
{
    Arena &memory = arena(device);
    std::lock_guard<std::mutex> lock(memory.mutex);
    std::size_t length = rounded(size);
    std::size_t offset = address - memory.base;
    memory.used -= length;
    memory.count(offset, length, false);
    if (length >= give_back_from) {
        std::uintptr_t first = (address + commit_unit - 1) / commit_unit * commit_unit;
        std::uintptr_t behind = (address + length) / commit_unit * commit_unit;
        if (behind > first)
            madvise(reinterpret_cast<void *>(first), behind - first, MADV_DONTNEED);
    }
    auto next = memory.holes.upper_bound(offset);
    if (next != memory.holes.end() && offset + length == next->first) {
        length += next->second;
        next = memory.holes.erase(next);
    }
    if (next != memory.holes.begin()) {
        auto before = std::prev(next);
        if (before->first + before->second == offset) {
            before->second += length;
            return;
        }
    }
    memory.holes[offset] = length;
}

/* Private pages that nobody has written are already zero. They stay untouched, because providing them takes longer
 * than clearing others. Once other processes share the device's memory, its pages may hold data that this process
 * never wrote, so all are cleared. */
void DeviceMemory::clear(CUdevice device, char *first, std::size_t size)
{
    Arena &memory = arena(device);
    bool shares;
    {
        std::lock_guard<std::mutex> lock(memory.mutex);
        shares = memory.file >= 0;
    }
    std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(first), behind = begin + size;
    std::uintptr_t whole = (begin + page - 1) / page * page, end = behind / page * page;
    if (shares || size < least_examined) {
        std::memset(first, 0, size);
        return;
    }
    int map = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    std::memset(first, 0, whole - begin);
    for (std::uintptr_t at = whole; at < end; at += pages_at_a_time * page)
        clear_pages(map, reinterpret_cast<char *>(at), std::min(pages_at_a_time, (end - at) / page));
    std::memset(reinterpret_cast<char *>(end), 0, behind - end);
    if (map >= 0)
        close(map);
}

bool DeviceMemory::take(CUdevice device, std::size_t size)
{
    Arena &memory = arena(device);
    std::lock_guard<std::mutex> lock(memory.mutex);
    if (size > total() - memory.used)
        return false;
    memory.used += size;
    return true;
}

void DeviceMemory::give_back(CUdevice device, std::size_t size)
{
    Arena &memory = arena(device);
    std::lock_guard<std::mutex> lock(memory.mutex);
    memory.used -= size;
}

bool DeviceMemory::owns(CUdevice device, std::uintptr_t address)
{
    Arena &memory = arena(device);
    std::lock_guard<std::mutex> lock(memory.mutex);
    return address - memory.base < memory.size;
}

CUresult DeviceMemory::share(CUdevice device, std::uintptr_t address, std::size_t size, int &file, std::size_t &offset)
{
    Arena &memory = arena(device);
    std::lock_guard<std::mutex> lock(memory.mutex);
    if (memory.file < 0) {
        memory.file = memfd_create("vgpu-device-memory", MFD_CLOEXEC);
        memory.shared.assign(memory.size / commit_unit, false);
        if (memory.file < 0 || ftruncate(memory.file, static_cast<off_t>(memory.size)) != 0)
            return CUDA_ERROR_OUT_OF_MEMORY;
    }
    file = memory.file;
    offset = address - memory.base;
    for (std::size_t unit = offset / commit_unit; unit <= (offset + size - 1) / commit_unit; ++unit)
        if (!memory.share(unit))
            return CUDA_ERROR_OUT_OF_MEMORY;
    return CUDA_SUCCESS;
}

DeviceMemory::Map DeviceMemory::map(CUdevice device)
{
    Arena &memory = arena(device);
    std::lock_guard<std::mutex> lock(memory.mutex);
    return {memory.base, memory.size, memory.present.data()};
}

std::size_t DeviceMemory::total()
{
    double bytes = configuration().device_memory * (std::size_t{1} << 30);
    return std::max(static_cast<std::size_t>(bytes) / commit_unit, std::size_t{1}) * commit_unit;
}

std::size_t DeviceMemory::used(CUdevice device)
{
    Arena &memory = arena(device);
    std::lock_guard<std::mutex> lock(memory.mutex);
    return memory.used;
}

} // namespace vgpu
