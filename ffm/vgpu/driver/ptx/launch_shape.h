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
    bool cooperative = false;       /* all blocks run at a time, and may wait for each other */
    std::size_t stack = 0; /* bytes that each thread may use for its calls, if that is more than the usual limit */
};

} // namespace vgpu
