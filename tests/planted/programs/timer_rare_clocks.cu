// As timer_clocks, with clocks that few programs use: ticks since the start, a coarse clock, one that goes on while the
// machine sleeps, and the alarm that is left.
// variants: ticks, coarse, sleeping, alarm, untimed
// like: timer_clocks
#include "planted.h"

#include <algorithm>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>

static double read_clock(clockid_t clock)
{
    timespec time = {};
    clock_gettime(clock, &time);
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

static double now()
{
    if (variant("ticks")) {
        tms used;
        return double(times(&used)) / double(sysconf(_SC_CLK_TCK));
    }
    if (variant("coarse"))
        return read_clock(CLOCK_MONOTONIC_COARSE);
    if (variant("sleeping"))
        return read_clock(CLOCK_BOOTTIME);
    if (variant("alarm")) {
        itimerval left = {};
        getitimer(ITIMER_REAL, &left);
        return -(double(left.it_value.tv_sec) + 1e-6 * double(left.it_value.tv_usec));
    }
    return 0;
}

void program()
{
    const itimerval hour = {{0, 0}, {3600, 0}};
    if (variant("alarm"))
        setitimer(ITIMER_REAL, &hour, nullptr);
    int *device = device_integers(2);
    double fastest = 1e9; // of some rounds: other programs may delay one
    for (int round = 0; round < 3; round++) {
        fill(device, 1, 7);
        // sync: ticks, coarse, sleeping, alarm required, untimed unnecessary
        WAIT(before, cudaDeviceSynchronize());
        const double start = now();
        fill(device + 1, 1, 8);
        // sync: ticks, coarse, sleeping, alarm required, untimed unnecessary
        WAIT(after, cudaDeviceSynchronize());
        fastest = std::min(fastest, now() - start);
    }
    if (!variant("untimed") && planted::proving()) { // with a kernel of 40 ms, and clocks of 10 ms
        expect("the second kernel was waited for", fastest > 0.025, 1);
        expect("the first was over", fastest < 0.065, 1);
    }
}
