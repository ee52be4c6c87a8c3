/* Copies as calls on a stream. */
#pragma once

#include "copy.h"

namespace vgpu
{

/* Enqueues the copy, or captures it, and waits as its kinds of memory and `synchronous` demand.
 *
 * Errors: CUDA_ERROR_INVALID_VALUE if the box exceeds an allocation. */
CUresult copy(Stream &stream, const CopySide &destination, const CopySide &source, const CopyShape &shape,
              bool synchronous);

} // namespace vgpu
