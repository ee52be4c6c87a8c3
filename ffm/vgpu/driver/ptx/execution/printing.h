/* printf of kernels. */
#pragma once

#include <string>

namespace vgpu::ptx
{

/* What `format` prints with the arguments as vprintf of device code packs them: each at a multiple of its size,
 * integers of 4 or 8 bytes, doubles, pointers. `count` becomes the number of arguments. */
std::string printed(const char *format, const char *arguments, int &count);

} // namespace vgpu::ptx
