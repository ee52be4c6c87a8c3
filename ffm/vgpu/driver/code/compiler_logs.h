/* What the compiler of device code has to tell. */
#pragma once

#include "foundation/cuda_api.h"

namespace vgpu
{

/* Reports nothing: the buffers that the options name get an empty text, and their sizes, which are results, become 0.
 * Without options or values there is nothing to do. */
void empty_logs(unsigned int count, const CUjit_option *options, void **values);

} // namespace vgpu
