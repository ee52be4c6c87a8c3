/* A kernel's run over its grid: the blocks on the processors. */
#pragma once

#include "launch.h"

namespace vgpu::ptx
{

/* Runs all blocks, on all processors; returns when they are over. `time_limit` is in seconds; 0: none. `printed`
 * becomes what the kernel printed. */
CUresult run(const Code &code, const LaunchShape &shape, const Arguments &arguments, double time_limit,
             std::string &printed);

} // namespace vgpu::ptx
