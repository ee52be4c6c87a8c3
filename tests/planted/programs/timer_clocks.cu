// The program waits, reads a clock, starts a kernel, waits, and reads the clock again, with every clock there is. Both
// waits are needed for the time between. Without a clock neither is.
// variants: raw, kernel, gettimeofday, rdtsc, rdtscp, openmp, chrono, timespec, timer, untimed
#include "planted.h"

#include <algorithm>
#include <chrono>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <x86intrin.h>

static double in_seconds(const timespec &time)
{
    return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

static double now()
{
    timespec time = {};
    if (variant("raw"))
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
    if (variant("timespec"))
        timespec_get(&time, TIME_UTC);
    if (variant("kernel")) {
        using Clock = int (*)(clockid_t, timespec *);
        void *kernel = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
        reinterpret_cast<Clock>(dlvsym(kernel, "__vdso_clock_gettime", "LINUX_2.6"))(CLOCK_MONOTONIC, &time);
    }
    if (variant("gettimeofday")) {
        timeval day = {};
        gettimeofday(&day, nullptr);
        return double(day.tv_sec) + 1e-6 * double(day.tv_usec);
    }
    if (variant("rdtsc"))
        return double(__rdtsc()) / 2e9; // not slower than any processor of today
    if (variant("rdtscp")) {
        unsigned int processor;
        return double(__rdtscp(&processor)) / 2e9;
    }
    if (variant("openmp")) {
        static void *library = dlopen("libgomp.so.1", RTLD_LAZY);
        return reinterpret_cast<double (*)()>(dlsym(library, "omp_get_wtime"))();
    }
    if (variant("timer")) {
        static const int timer = [] {
            const itimerspec hour = {{0, 0}, {3600, 0}};
            const int made = timerfd_create(CLOCK_MONOTONIC, 0);
            timerfd_settime(made, 0, &hour, nullptr);
            return made;
        }();
        itimerspec left = {};
        timerfd_gettime(timer, &left);
        return -in_seconds(left.it_value);
    }
    if (variant("chrono"))
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
    return in_seconds(time);
}

void program()
{
    int *device = device_integers(2);
    double fastest = 1e9; // of some rounds: other programs may delay one
    for (int round = 0; round < 3; round++) {
        fill(device, 1, 7);
        // sync: raw, kernel, gettimeofday, rdtsc, rdtscp, openmp, chrono, timespec, timer required, untimed unnecessary
        WAIT(before, cudaDeviceSynchronize());
        const double start = now();
        add_slowly(device + 1, device, 1);
        // sync: raw, kernel, gettimeofday, rdtsc, rdtscp, openmp, chrono, timespec, timer required, untimed unnecessary
        WAIT(after, cudaDeviceSynchronize());
        fastest = std::min(fastest, now() - start);
    }
    if (!variant("untimed") && planted::proving()) {
        expect("the second kernel was waited for", fastest > 0.008, 1);
        expect("the first was over", fastest < 0.035, 1);
    }
}
