/* Device code that nvcc compressed (nvcc --compress-mode). */
#pragma once

#include <cstddef>
#include <string>

namespace vgpu
{

enum class Compression { lz4, zstandard };

/* Fills `plain`, which has the size of the code; false if the bytes are wrong or the machine has no library for the
 * format, which is named on standard error. */
bool decompress(Compression compression, const char *bytes, std::size_t size, std::string &plain);

} // namespace vgpu
