/* Where those addresses of a kernel lead that are not plainly in device memory. */
#pragma once

#include <cstdint>

#include "block.h"

namespace vgpu::ptx
{

/* Where this processor finds `width` bytes that a kernel addresses: in shared or local memory, in the kernel's
 * parameters, in pinned or managed memory (by the GPU's own view of it), or in ordinary memory of the program where the
 * device uses that. False where nothing lies. */
bool reach(const Block &block, const Thread &thread, std::uint64_t address, std::uint64_t width, std::uint64_t &place);

/* Forgets what a thread remembers of the program's memory: between two launches it may have changed. */
void forget_addresses();

} // namespace vgpu::ptx
