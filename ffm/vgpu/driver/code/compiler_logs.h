/* What the compiler of device code has to tell. */
#pragma once

#include "foundation/cuda_api.h"

namespace vgpu
{

/* Nothing is ever told: the buffers that the options name hold an empty text, and their sizes, which are results, are
 * 0. Without options or values there is nothing to do. */
void empty_logs(unsigned int count, const CUjit_option *options, void **values);

} // namespace vgpu
