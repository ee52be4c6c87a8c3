/* How many threads a launch has, and what each block gets. */
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu
{

struct LaunchShape {
    std::uint32_t grid[3];          /* blocks */
    std::uint32_t block[3];         /* threads */
    std::size_t dynamic_shared = 0; /* bytes */
};

} // namespace vgpu
