// The program reads the clock on both sides of the kernel and its wait; or it reads no clock.
// variants: timed, untimed
#include "planted.h"

#include <chrono>

void program()
{
    using Clock = std::chrono::steady_clock;
    int *device = device_integers(1);
    Clock::time_point start;
    if (variant("timed"))
        start = Clock::now();
    fill(device, 1, 7);
    WAIT(last, cudaDeviceSynchronize()); // sync: timed required, untimed unnecessary
    if (variant("timed"))
        expect("a millisecond passed", Clock::now() - start > std::chrono::milliseconds(2), 1);
}
