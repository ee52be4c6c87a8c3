/* How a kernel's threads begin and end, for the two schedules that give control back where threads wait.
 *
 * Regions: code between two places where threads wait. The kernel's function lets some lanes of a warp, one after the
 * other, go on from one such place, each until it waits again. There the driver handles all of them at once. The values
 * that a lane still needs lie in its warp's frame, one array of 32 for each register.
 *
 * Coroutines of LLVM's (LLVM, "Coroutines in LLVM"): a thread that waits returns to the driver, and keeps the values
 * that it still needs in its frame. */
#pragma once

#include <string>

namespace vgpu::ptx
{

/* The labels where a lane, or a coroutine, goes when it comes to its end. No label of PTX has a dot. */
extern const char *const region_over;
extern const char *const coroutine_over;

extern const char *const region_parameters;

/* `vgpu_entry`; of coroutines, it starts a thread or, without a frame, says how large that has to be. */
std::string region_entry(const std::string &body);
std::string coroutine_entry(const std::string &body);

} // namespace vgpu::ptx
