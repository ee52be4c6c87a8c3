// The program reads the processor's counter over and over until some time has passed, as often as it can. Among those
// reads, one after a wait is compared with one before; or it spins before the wait only, and reads nothing after it; or
// another thread spins in the same function all the while.
// variants: timed, beside, before
#include "planted.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <x86intrin.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static std::atomic<bool> over{false};

__attribute__((noinline)) static double now()
{
    return double(__rdtsc()) / 2e9; // not slower than any processor of today
}

static void spin(double seconds)
{
    for (const double end = now() + seconds; now() < end;)
        continue;
}

void program()
{
    int *device = device_integers(2);
    double fastest = 1e9; // of some rounds: other programs may delay one
    std::thread beside([] {
        while (variant("beside") && !over)
            spin(0.001);
    });
    for (int round = 0; round < 3; round++) {
        spin(0.002);
        fill(device, 1, 7);
        WAIT(earlier, cudaDeviceSynchronize()); // sync: timed, beside required, before unnecessary
        const double start = variant("before") ? 0 : now();
        add_slowly(device + 1, device, 1);
        WAIT(after, cudaDeviceSynchronize()); // sync: timed, beside required, before unnecessary
        if (variant("before"))
            break;
        fastest = std::min(fastest, now() - start);
    }
    over = true;
    beside.join();
    if (!variant("before") && planted::proving()) {
        expect("the second kernel was waited for", fastest > 0.008, 1);
        expect("the first was over", fastest < 0.035, 1);
    }
}
