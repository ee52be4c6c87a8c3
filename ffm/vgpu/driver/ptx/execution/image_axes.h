/* How translated code tells the driver which axes an image is accessed by. */
#pragma once

namespace vgpu::ptx
{

/* In the place of the number of axes: a direction chooses one of six faces, and a place there. */
constexpr int image_of_faces = 6;

} // namespace vgpu::ptx
