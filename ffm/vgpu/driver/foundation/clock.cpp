#include "clock.h"

#include <ctime>

namespace vgpu
{

namespace
{
/* On a virtual machine, a sleeping thread may wake up this late. The last part of a sleep is spent spinning instead. */
constexpr Nanoseconds wake_up_margin = 40'000;
} // namespace

Nanoseconds now()
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * Nanoseconds{1'000'000'000} + time.tv_nsec;
}

void sleep_until(Nanoseconds moment)
{
    while (true) {
        Nanoseconds left = moment - now();
        if (left <= 0)
            return;
        if (left > wake_up_margin + wake_up_margin / 2) {
            Nanoseconds wake = moment - wake_up_margin;
            timespec time = {static_cast<time_t>(wake / 1'000'000'000), static_cast<long>(wake % 1'000'000'000)};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
        } else {
            __builtin_ia32_pause();
        }
    }
}

} // namespace vgpu
