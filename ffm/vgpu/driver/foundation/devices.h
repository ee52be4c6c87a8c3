/* The devices of the machine, and which of them this process sees.
 *
 * The machine's devices are numbered from 0 in the order of their buses. A process sees those that the variable
 * CUDA_VISIBLE_DEVICES names, in the order of the list, and numbers them from 0 (CUDA Programming Guide, "CUDA
 * Environment Variables"). All that the driver answers uses the process's numbers; a device's bus and UUID belong to
 * the machine.
 */
#pragma once

#include "cuda_api.h"

namespace vgpu
{

/* Reads CUDA_VISIBLE_DEVICES, once the configuration has been read. Returns false if the process sees no device. */
bool find_visible_devices();

/* How many devices the process sees. */
int visible_devices();

/* Whether the process sees a device of this number. */
bool is_device(CUdevice device);

/* The number that a visible device has on the machine. */
int number_on_machine(CUdevice device);

/* The number that a device of the machine has in this process, or -1 if the process does not see it. */
CUdevice number_in_process(int number_on_machine);

/* The UUID of a visible device. */
CUuuid uuid_of(CUdevice device);

} // namespace vgpu
