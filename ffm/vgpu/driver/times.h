/* What the virtual GPU did when, written down where the environment asks for it: VGPU_TIMES=FILE.
 *
 * One line for each operation that took time, "SUBMITTED START END", nanoseconds of CLOCK_MONOTONIC; the modelled
 * times, which a CPU that comes late does not change. FILE gets the process's number behind it. For judging what a
 * tool infers of the GPU; a real driver has no such thing.
 */
#pragma once

#include "operation.h"

namespace vgpu
{

/* Called with the scheduler's mutex held. */
void write_times(const Operation &operation);

} // namespace vgpu
