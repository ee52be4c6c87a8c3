/* What the virtual GPU did when, written if the environment requests it: VGPU_TIMES=FILE.
 *
 * One line for each operation that took time, "SUBMITTED START END", in nanoseconds of CLOCK_MONOTONIC. These are the
 * modelled times, which do not change if the CPU is late. The process's number is appended to FILE. They serve to judge
 * what a tool infers about the GPU; a real driver has nothing like it.
 */
#pragma once

#include "operation.h"

namespace vgpu
{

/* Called with the scheduler's mutex held. */
void write_times(const Operation &operation);

} // namespace vgpu
