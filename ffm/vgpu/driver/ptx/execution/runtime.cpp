/* The driver's functions that translated code calls. `prelude.cpp` declares them. */
#include <cmath>
#include <cstring>
#include <map>
#include <sched.h>

#include "../machine/object.h"
#include "../program.h"
#include "addresses.h"
#include "block_run.h"
#include "foundation/clock.h"
#include "mathematics.h"
#include "memory/memory.h"
#include "printing.h"
#include "sampling.h"

namespace vgpu::ptx
{

namespace
{

constexpr std::int64_t cycles_per_microsecond = 1980; /* matches CU_DEVICE_ATTRIBUTE_CLOCK_RATE */

std::string hexadecimal(std::uint64_t value)
{
    char text[20];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
    return text;
}

std::string triple(const std::uint32_t values[3])
{
    return "(" + std::to_string(values[0]) + ", " + std::to_string(values[1]) + ", " + std::to_string(values[2]) + ")";
}

std::string place_of(const Block *block, const Thread *thread)
{
    return "thread " + triple(thread->index) + " of block " + triple(block->index);
}

[[noreturn]] void bad_address(Block *block, Thread *thread, std::uint64_t address, std::uint64_t width,
                              const char *what)
{
    bool misaligned = address % width != 0;
    std::string cause = std::to_string(width) + " bytes at " + what + hexadecimal(address) +
                        (misaligned ? ", which is misaligned, are used by " : ", where nothing lies, are used by ");
    block->run->fail(misaligned ? Fault::misaligned : Fault::address, cause + place_of(block, thread));
}

std::uint64_t vgpu_reach(Block *block, Thread *thread, std::uint64_t address, std::uint64_t width)
{
    std::uint64_t moved;
    if (address % width == 0 && reach(*block, *thread, address, width, moved))
        return moved;
    bad_address(block, thread, address, width, "");
}

std::uint64_t vgpu_reach_shared(Block *block, Thread *thread, std::uint64_t address, std::uint64_t width)
{
    bad_address(block, thread, address, width, "the shared address ");
}

void vgpu_stopped(Block *block, Thread *)
{
    block->run->abandon();
}

void vgpu_fault(Block *block, Thread *thread, int fault)
{
    const char *what = static_cast<Fault>(fault) == Fault::stack ? "no room is left on the stack of " : "trap in ";
    block->run->fail(static_cast<Fault>(fault), what + place_of(block, thread));
}

void vgpu_exit(Block *block, Thread *)
{
    block->run->end_thread();
}

std::uint32_t vgpu_turn(Block *block, Thread *)
{
    return block->run->take_turns();
}

std::uint32_t vgpu_stride(Block *block, Thread *)
{
    return block->run->let_others_catch_up();
}

/* Gives others a turn, whatever the time to sleep: the thread may be waiting for one of them. */
std::uint32_t vgpu_sleep(Block *block, Thread *, std::uint32_t)
{
    return block->run->take_turns();
}

std::uint32_t vgpu_barrier(Block *block, Thread *, std::uint32_t number, std::uint32_t count, int how,
                           std::uint32_t holds)
{
    return block->run->wait_at_barrier(number, count, how, holds != 0);
}

std::uint32_t vgpu_warp_barrier(Block *block, Thread *, std::uint32_t mask)
{
    return block->run->meet(Meeting::barrier, 0, 0, 0, 0, mask);
}

std::uint32_t vgpu_shuffle(Block *block, Thread *, int mode, std::uint32_t value, std::uint32_t lane,
                           std::uint32_t clamp, std::uint32_t mask)
{
    return block->run->meet(Meeting::shuffle, mode, value, lane, clamp, mask);
}

std::uint32_t vgpu_vote(Block *block, Thread *, int mode, std::uint32_t holds, std::uint32_t mask)
{
    return block->run->meet(Meeting::vote, mode, holds, 0, 0, mask);
}

std::uint32_t vgpu_match(Block *block, Thread *, int all, std::uint64_t value, std::uint32_t mask)
{
    return block->run->meet(Meeting::match, all, value, 0, 0, mask);
}

std::uint32_t vgpu_reduce(Block *block, Thread *, int how, std::uint32_t value, std::uint32_t mask)
{
    return block->run->meet(Meeting::reduce, how, value, 0, 0, mask);
}

std::uint32_t vgpu_active(Block *block, Thread *, int site)
{
    return block->run->active_lanes(site);
}

void vgpu_no_function(Block *block, Thread *thread, std::uint64_t address)
{
    block->run->fail(Fault::call,
                     "no function at " + hexadecimal(address) + ", which is called by " + place_of(block, thread));
}

int vgpu_print(Block *block, Thread *, std::uint64_t format, std::uint64_t arguments)
{
    int count = 0;
    block->run->launch.print(
        printed(reinterpret_cast<const char *>(format), reinterpret_cast<const char *>(arguments), count));
    return count;
}

/* The message is the same as NVIDIA's driver prints. */
void vgpu_assert(Block *block, Thread *thread, std::uint64_t message, std::uint64_t file, std::uint32_t line,
                 std::uint64_t function)
{
    auto text = [](std::uint64_t address) { return std::string(reinterpret_cast<const char *>(address)); };
    auto list = [](const std::uint32_t values[3]) {
        return "[" + std::to_string(values[0]) + "," + std::to_string(values[1]) + "," + std::to_string(values[2]) +
               "]";
    };
    block->run->fail(Fault::assertion, text(file) + ":" + std::to_string(line) + ": " + text(function) +
                                           ": block: " + list(block->index) + ", thread: " + list(thread->index) +
                                           " Assertion `" + text(message) + "` failed.");
}

std::uint64_t vgpu_allocate(Block *block, Thread *, std::uint64_t size)
{
    Allocation allocation;
    allocation.device = block->run->launch.arguments.device;
    if (DeviceMemory::allocate(allocation.device, size ? size : 1, allocation.address) != CUDA_SUCCESS)
        return 0;
    allocation.size = size ? size : 1;
    allocation.kind = MemoryKind::device;
    allocation.gpu_view = reinterpret_cast<char *>(allocation.address);
    add_allocation(allocation);
    return allocation.address;
}

void vgpu_free(Block *, Thread *, std::uint64_t address)
{
    Allocation removed;
    if (remove_allocation(address, MemoryKind::device, removed))
        DeviceMemory::release(removed.device, removed.address, removed.size);
}

[[noreturn]] void no_image(Block *block, Thread *thread, const char *what, std::uint64_t number)
{
    block->run->fail(Fault::address,
                     what + std::to_string(number) + ", which does not exist, is used by " + place_of(block, thread));
}

void vgpu_fetch_texture(Block *block, Thread *thread, std::uint64_t number, int dimensions, std::uint32_t x,
                        std::uint32_t y, std::uint32_t z, std::uint32_t layer, int real, std::uint32_t *channels)
{
    const ImageObject *texture = find_image_object(number);
    if (!texture || texture->is_surface || !texture->image.memory)
        no_image(block, thread, "the texture object ", number);
    sample(*texture, {dimensions, real != 0, {x, y, z}, layer}, channels);
}

/* Accesses outside the surface that have no effect go to `lost`. */
char *vgpu_surface_texel(Block *block, Thread *thread, std::uint64_t number, int dimensions, std::uint32_t x,
                         std::uint32_t y, std::uint32_t z, std::uint32_t layer, std::uint32_t bytes, int outside,
                         char *lost)
{
    const ImageObject *surface = find_image_object(number);
    if (!surface || !surface->is_surface)
        no_image(block, thread, "the surface object ", number);
    if (x % bytes != 0)
        bad_address(block, thread, x, bytes, "the surface's first coordinate ");
    auto how = static_cast<Outside>(outside);
    char *texel = surface_texel(*surface, {dimensions, false, {x, y, z}, layer}, bytes, how);
    if (!texel && how == Outside::trap)
        block->run->fail(Fault::address, "the surface object " + std::to_string(number) +
                                             " is accessed outside of its array by " + place_of(block, thread));
    return texel ? texel : lost;
}

std::uint64_t vgpu_clock()
{
    return static_cast<std::uint64_t>(now() * cycles_per_microsecond / 1000);
}

std::uint64_t vgpu_nanoseconds()
{
    return static_cast<std::uint64_t>(now());
}

} // namespace

void *runtime_function(const std::string &name)
{
#define ENTRY(function)                                                                                                \
    {                                                                                                                  \
        #function, reinterpret_cast<void *>(&function)                                                                 \
    }
    static const std::map<std::string, void *> *functions = new std::map<std::string, void *>{
        ENTRY(vgpu_reach),
        ENTRY(vgpu_reach_shared),
        ENTRY(vgpu_stopped),
        ENTRY(vgpu_fault),
        ENTRY(vgpu_exit),
        ENTRY(vgpu_turn),
        ENTRY(vgpu_stride),
        ENTRY(vgpu_sleep),
        ENTRY(vgpu_barrier),
        ENTRY(vgpu_warp_barrier),
        ENTRY(vgpu_shuffle),
        ENTRY(vgpu_vote),
        ENTRY(vgpu_match),
        ENTRY(vgpu_reduce),
        ENTRY(vgpu_active),
        ENTRY(vgpu_no_function),
        ENTRY(vgpu_print),
        ENTRY(vgpu_assert),
        ENTRY(vgpu_allocate),
        ENTRY(vgpu_free),
        ENTRY(vgpu_fetch_texture),
        ENTRY(vgpu_surface_texel),
        ENTRY(vgpu_clock),
        ENTRY(vgpu_nanoseconds),
        ENTRY(vgpu_round_f32),
        ENTRY(vgpu_round_f64),
        ENTRY(vgpu_narrow_f64),
        ENTRY(vgpu_narrow_f32),
        ENTRY(vgpu_narrow_8),
        ENTRY(vgpu_widen_8),
        ENTRY(vgpu_fma_16),
        ENTRY(vgpu_integer_f32),
        ENTRY(vgpu_integer_f64),
        ENTRY(vgpu_approximate),
        ENTRY(vgpu_nth_bit),
        ENTRY(memcpy),
        ENTRY(memset),
        ENTRY(memmove),
        {"fma", reinterpret_cast<void *>(static_cast<double (*)(double, double, double)>(std::fma))},
        {"fmaf", reinterpret_cast<void *>(static_cast<float (*)(float, float, float)>(std::fma))},
    };
#undef ENTRY
    auto found = functions->find(name);
    return found == functions->end() ? nullptr : found->second;
}

} // namespace vgpu::ptx
