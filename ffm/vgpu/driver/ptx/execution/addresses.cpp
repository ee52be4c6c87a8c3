#include "addresses.h"

#include <cinttypes>
#include <cstdio>

#include "block_run.h"
#include "foundation/configuration.h"
#include "memory/memory.h"

namespace vgpu::ptx
{

namespace
{

/* A range of addresses, and the distance from there to where this process maps it. */
struct Range {
    std::uint64_t first, size, distance;
};

constexpr int remembered = 4;
thread_local Range ranges[remembered];
thread_local int oldest = 0;

bool find_remembered(std::uint64_t address, std::uint64_t width, std::uint64_t &place)
{
    for (const Range &range : ranges)
        if (address - range.first < range.size && width <= range.size - (address - range.first)) {
            place = address + range.distance;
            return true;
        }
    return false;
}

void remember(const Range &range)
{
    ranges[oldest] = range;
    oldest = (oldest + 1) % remembered;
}

bool find_known(std::uint64_t address, Range &range)
{
    Allocation allocation;
    if (!find_allocation(address, allocation))
        return false;
    range.first = allocation.address;
    range.size = allocation.size;
    range.distance =
        allocation.gpu_view ? reinterpret_cast<std::uint64_t>(allocation.gpu_view) - allocation.address : 0;
    return true;
}

/* Finds the range among the GPU's own views of pinned and managed memory, to which a kernel's parameters point. */
bool find_view(std::uint64_t address, Range &range)
{
    Allocation allocation;
    if (!find_gpu_view(address, allocation))
        return false;
    range = {reinterpret_cast<std::uint64_t>(allocation.gpu_view), allocation.size, 0};
    return true;
}

/* Finds the mapping of the program's own memory that contains the address (proc(5), /proc/pid/maps). Mappings
 * without any permission count as well, because tools protect pages for a while. */
bool find_mapped(std::uint64_t address, Range &range)
{
    std::FILE *maps = std::fopen("/proc/self/maps", "re");
    if (!maps)
        return false;
    char line[512];
    bool found = false;
    while (!found && std::fgets(line, sizeof line, maps)) {
        std::uint64_t first, behind;
        if (std::sscanf(line, "%" SCNx64 "-%" SCNx64, &first, &behind) != 2)
            continue;
        found = address - first < behind - first;
        range = {first, behind - first, 0};
    }
    std::fclose(maps);
    return found;
}

/* The whole range of device memory is mapped, so find_mapped would find it even where nothing is allocated. */
bool is_device_memory(const Block &block, std::uint64_t address)
{
    return address - block.memory_first < block.memory_size;
}

} // namespace

bool reach(const Block &block, const Thread &thread, std::uint64_t address, std::uint64_t width, std::uint64_t &place)
{
    auto within = [&](std::uint64_t first, std::uint64_t size) { return address - first < size; };
    const Launch &launch = block.run->launch;
    place = address;
    if (within(reinterpret_cast<std::uint64_t>(block.shared), block.shared_size) ||
        within(thread.stack_first, thread.stack_size) ||
        within(reinterpret_cast<std::uint64_t>(launch.arguments.parameters), launch.arguments.size) ||
        (launch.shape.cooperative && within(block.workspace, launch.workspace.size() * sizeof launch.workspace[0])))
        return true;
    if (find_remembered(address, width, place))
        return true;
    Range range;
    if (is_device_memory(block, address))
        return false;
    if (!find_known(address, range) && !find_view(address, range) &&
        (configuration().pageable_memory_access == 0 || !find_mapped(address, range)))
        return false;
    remember(range);
    place = address + range.distance;
    return true;
}

void forget_addresses()
{
    for (Range &range : ranges)
        range = {};
}

} // namespace vgpu::ptx
