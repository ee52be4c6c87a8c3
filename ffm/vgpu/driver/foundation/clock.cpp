#include "clock.h"

#include <ctime>

namespace vgpu
{

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
        if (left > worth_sleeping) {
            Nanoseconds wake = moment - wake_up_margin;
            timespec time = {static_cast<time_t>(wake / 1'000'000'000), static_cast<long>(wake % 1'000'000'000)};
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
        } else {
            __builtin_ia32_pause();
        }
    }
}

} // namespace vgpu
