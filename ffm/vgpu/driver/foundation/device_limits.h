/* How much the device runs at a time: compute capability 9.0 (CUDA C++ Programming Guide, "Compute Capabilities"). */
#pragma once

#include <algorithm>
#include <cstddef>

namespace vgpu
{

constexpr int threads_per_multiprocessor = 2048;
constexpr int blocks_per_multiprocessor = 32;
constexpr int threads_per_block = 1024;
constexpr unsigned shared_memory_per_block = 227 * 1024; /* bytes, for kernels that ask for it */
constexpr unsigned shared_memory_unasked = 48 * 1024;    /* for all others */
constexpr unsigned shared_memory_per_multiprocessor = 228 * 1024;
constexpr unsigned reserved_shared_memory = 1024;           /* bytes, of each block */
constexpr std::size_t local_memory_per_thread = 512 * 1024; /* bytes */

/* Blocks of a multiprocessor at a time. Registers are not modelled. */
constexpr int resident_blocks(int threads, std::size_t shared_bytes)
{
    if (threads > threads_per_block || shared_bytes > shared_memory_per_block)
        return 0;
    int by_threads = threads_per_multiprocessor / threads;
    int by_memory = static_cast<int>(shared_memory_per_multiprocessor / (shared_bytes + reserved_shared_memory));
    return std::min({blocks_per_multiprocessor, by_threads, by_memory});
}

} // namespace vgpu
