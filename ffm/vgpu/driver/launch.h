/* Kernel launches. */
#pragma once

#include "context.h"
#include "module.h"

namespace vgpu
{

/* Enqueues the kernel with a copy of its arguments; never waits. Errors: CUDA_ERROR_INVALID_VALUE for a grid
 * or a block that no CUDA device takes. */
CUresult launch(Stream &stream, Kernel &kernel, const std::uint32_t grid[3], const std::uint32_t block[3],
                void *const *arguments);

} // namespace vgpu
