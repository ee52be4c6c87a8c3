/* Compiled kernels on disk, in a folder that only the user can write to. */
#pragma once

#include <string>

namespace vgpu::ptx
{

/* The object file that was stored for this assembly text and processor; false where there is none or it is damaged. */
bool find_compiled(const std::string &assembly, std::string &object);

/* Keeps the object file; if that fails, there is just no copy. */
void keep_compiled(const std::string &assembly, const std::string &object);

} // namespace vgpu::ptx
