/* Functions of NVIDIA's device runtime (libcudadevrt) that kernels call; its own are machine code. */
#pragma once

#include "syntax/syntax.h"

namespace vgpu::ptx
{

/* Defines those that the module names and does not define. */
void add_device_runtime(Module &module);

} // namespace vgpu::ptx
