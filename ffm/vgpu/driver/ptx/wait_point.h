/* The places where threads of a kernel wait, as its translation describes them and the driver acts on them. */
#pragma once

#include <cstdint>

namespace vgpu::ptx
{

constexpr int wait_arguments = 5;

/* The functions of the driver that threads wait in. */
enum class Wait : std::uint8_t { stride, turn, barrier, warp_barrier, shuffle, vote, match, reduce, active };

struct WaitArgument {
    bool known = false; /* else each thread's own value lies in its warp's record */
    std::uint64_t value = 0;
};

/* A place in a kernel that is made of regions (`translation/schedules.h`). */
struct WaitPoint {
    Wait wait = Wait::turn;
    WaitArgument arguments[wait_arguments];
};

/* The place of threads that are over. */
constexpr std::uint32_t point_over = ~std::uint32_t{0};

} // namespace vgpu::ptx
