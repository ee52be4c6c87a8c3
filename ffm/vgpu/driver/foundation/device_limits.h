/* How much the device runs at a time: compute capability 9.0 (CUDA C++ Programming Guide, "Compute Capabilities"). */
#pragma once

namespace vgpu
{

constexpr int threads_per_multiprocessor = 2048;
constexpr int blocks_per_multiprocessor = 32;
constexpr int threads_per_block = 1024;
constexpr unsigned shared_memory_per_block = 227 * 1024; /* bytes, for kernels that ask for it */

} // namespace vgpu
