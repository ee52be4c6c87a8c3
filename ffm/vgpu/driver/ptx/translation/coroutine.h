/* Kernels as coroutines of LLVM's (LLVM, "Coroutines in LLVM"): a thread that waits returns to the driver, and keeps
 * the values that it still needs in its frame. */
#pragma once

#include <string>

namespace vgpu::ptx
{

/* The label where a thread that comes to its end goes. No label of PTX has a dot. */
extern const char *const coroutine_over;

/* `vgpu_entry`, which starts a thread or, without a frame, says how large that has to be. */
std::string coroutine_entry(const std::string &body);

} // namespace vgpu::ptx
