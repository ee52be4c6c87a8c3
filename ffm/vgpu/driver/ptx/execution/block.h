/* What a block of threads is to the code that runs it. The first members of the structures are known to translated
 * code: `prelude.cpp` declares them in the same order. */
#pragma once

#include <cstddef>
#include <cstdint>

#include "ptx/wait_point.h"

namespace vgpu::ptx
{

class BlockRun;

struct Block {
    std::uint64_t memory_first;  /* the range of device memory */
    std::uint64_t memory_size;   /* bytes */
    const std::uint8_t *present; /* for each unit of 2 MiB of it: whether an allocation lies there */
    char *shared;
    std::uint64_t shared_size; /* bytes, static and dynamic */
    const char *parameters;
    const std::uint64_t *variables; /* addresses of the module's global and constant variables */
    const volatile std::int32_t *stop;
    std::uint32_t threads[3];
    std::uint32_t blocks[3];
    std::uint32_t index[3];
    std::uint32_t dynamic_shared; /* bytes */
    std::int32_t spins;           /* accesses that may be part of a spinning loop, until the next thread's turn */
    std::uint32_t grid_id;
    std::uint64_t workspace; /* of a cooperative grid; else 0 */

    BlockRun *run;
};

struct Thread {
    std::uint32_t index[3];
    std::uint32_t linear; /* in the block */
    std::uint64_t stack_first;
    std::uint64_t stack_size;
    std::uint64_t result; /* of the meeting or barrier that it waited for */
    char *frame;          /* of a coroutine: what the thread keeps while it waits; null asks for the size only */
    std::uint64_t frame_size;
    std::int32_t over; /* whether the coroutine came to its end */
};

constexpr int warp_size = 32;

/* What the lanes of a warp hand to the driver where they wait, and get back; of kernels that are made of regions. */
struct WarpRecord {
    std::uint64_t result[warp_size];
    std::uint64_t arguments[wait_arguments][warp_size];
    std::uint32_t next[warp_size]; /* the place where each goes on; 0: at the start */
};
constexpr int log_memory_unit = 21;

constexpr std::uint32_t lane_bit(int lane)
{
    return std::uint32_t{1} << lane;
}

} // namespace vgpu::ptx
