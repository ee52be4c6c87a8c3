/* What textures yield and where surfaces' texels lie (CUDA C++ Programming Guide, "Texture Fetching" and "Surface
 * Functions"). */
#pragma once

#include <cstdint>

#include "memory/image.h"

namespace vgpu::ptx
{

/* A fetch's coordinates: `real` ones have the bits of floats. */
struct Coordinates {
    int dimensions; /* 1 to 3, or `image_of_faces` */
    bool real;
    std::uint32_t values[3];
    std::uint32_t layer; /* 0 for what has no layers */
};

/* The four channels of the texel or of the filtered value: the bits of floats, or integers. Absent channels are 0. */
void sample(const ImageObject &texture, const Coordinates &at, std::uint32_t channels[4]);

/* What becomes of an access that lies outside of a surface. */
enum class Outside : int { trap = 0, clamp = 1, zero = 2 };

/* The address of `bytes` of a surface; null outside of it, unless accesses are clamped. The first coordinate is in
 * bytes. */
char *surface_texel(const ImageObject &surface, const Coordinates &at, std::uint32_t bytes, Outside outside);

} // namespace vgpu::ptx
