/* Whose value a lane gets. */
#pragma once

#include <cstdint>

namespace vgpu::ptx
{

/* As the translation numbers them. */
enum class Shuffle { up, down, butterfly, index };

/* shfl: the lane whose value `lane` gets (PTX ISA, "shfl.sync"); its own where there is none, and then false. */
template <Shuffle mode> bool source_lane(int lane, std::uint32_t b, std::uint32_t c, int &source)
{
    int segment = static_cast<int>(c >> 8 & 31), clamp = static_cast<int>(c & 31), offset = static_cast<int>(b & 31);
    int highest = (lane & segment) | (clamp & ~segment), lowest = lane & segment;
    if (mode == Shuffle::up)
        source = lane - offset;
    else if (mode == Shuffle::down)
        source = lane + offset;
    else if (mode == Shuffle::butterfly)
        source = lane ^ offset;
    else
        source = lowest | (offset & ~segment);
    bool inside = mode == Shuffle::up ? source >= highest : source <= highest;
    source = inside ? source : lane;
    return inside;
}

} // namespace vgpu::ptx
