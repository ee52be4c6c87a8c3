/* Kernel launches. */
#pragma once

#include "context.h"
#include "module.h"

namespace vgpu
{

/* CUDA_ERROR_INVALID_VALUE for a grid or block that no CUDA device accepts, or if the kernel has arguments and none are
 * given.
 */
CUresult check_launch(const Kernel &kernel, const std::uint32_t grid[3], const std::uint32_t block[3],
                      void *const *arguments);

/* The kernel's run over the grid, with a copy of its arguments; if there is nothing to run, only its time. */
OperationReference launch_operation(Kernel &kernel, const std::uint32_t grid[3], const std::uint32_t block[3],
                                    void *const *arguments);

/* Enqueues the kernel with a copy of its arguments, or captures it; never waits. Errors: those of check_launch. */
CUresult launch(Stream &stream, Kernel &kernel, const std::uint32_t grid[3], const std::uint32_t block[3],
                void *const *arguments);

} // namespace vgpu
