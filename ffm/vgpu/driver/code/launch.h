/* Kernel launches. */
#pragma once

#include "contexts/context.h"
#include "module.h"
#include "ptx/launch_shape.h"

namespace vgpu
{

/* CUDA_ERROR_INVALID_VALUE for a grid, a block or shared memory that no CUDA device has, and if arguments that the
 * kernel takes are missing; CUDA_ERROR_NOT_SUPPORTED, told on standard error, for device code that cannot be
 * translated. */
CUresult check_launch(Kernel &kernel, const LaunchShape &shape, void *const *arguments);

/* The kernel's run over the grid, with a copy of its arguments; just its time if there is nothing to run. If the kernel
 * faults, the context is in error. */
OperationReference launch_operation(Context *context, Kernel &kernel, const LaunchShape &shape, void *const *arguments);

/* Enqueues the kernel with a copy of its arguments, or captures it; never waits. Errors: those of check_launch. */
CUresult launch(Stream &stream, Kernel &kernel, const LaunchShape &shape, void *const *arguments);

} // namespace vgpu
