/* Kernels as regions: code between two places where threads wait. The kernel's function has some lanes of a warp, one
 * after the other, go on from one such place, each until it waits again; there the driver sees to all of them at once.
 * The values that a lane still needs lie in its warp's frame, one array of 32 for each register. */
#pragma once

#include <string>

namespace vgpu::ptx
{

/* The label where a lane that comes to its end goes. No label of PTX has a dot. */
extern const char *const region_over;

extern const char *const region_parameters;

/* `vgpu_entry`. */
std::string region_entry(const std::string &body);

} // namespace vgpu::ptx
