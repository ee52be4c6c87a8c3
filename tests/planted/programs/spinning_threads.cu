// A thread waits twice for a download and looks at it often. Another one runs meanwhile, as workers that spin until
// there is something to do: it never reads; or it reads by itself, or has the kernel read, what was there after the
// first wait, at some time after the second. It was there before the looking thread, or is started by it between the
// two waits.
// variants: spins, yields, reads, writes, started
#include "planted.h"

#include <atomic>
#include <sched.h>
#include <thread>
#include <vector>

constexpr int count = 1024, looks = 16; // more than are stepped over
constexpr size_t bytes = count * sizeof(int);

static std::atomic<bool> handed{false}, looked{false}, read_it{false}, over{false};
static const int *shared;
static int ends[2];

static bool only_spins()
{
    return variant("spins") || variant("yields");
}

static void other_thread()
{
    while (!handed)
        if (variant("yields"))
            sched_yield();
    if (!only_spins()) {
        while (!planted::proving() && !looked) // it could come at once as well
            continue;
        if (variant("writes"))
            expect("written", write(ends[1], shared, bytes), bytes);
        else
            expect("other", sum(shared, count), 7 * count);
    }
    read_it = true;
    while (!over)
        if (variant("yields"))
            sched_yield();
}

static void look(const int *host, int value)
{
    for (int number = 0; number < looks; ++number)
        expect("own", sum(host, count), value * count);
}

/* The looking thread has looked often before. */
static void warm_up(int *host, int *device)
{
    fill(device, count, 3);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: required
    look(host, 3);
}

void program()
{
    int *host = pinned_integers(count), *second = pinned_integers(count), *device = device_integers(2 * count);
    shared = host;
    expect("pipe", pipe(ends), 0);
    std::thread other;
    if (!variant("started"))
        other = std::thread(other_thread);
    warm_up(host, device);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: required, spins, yields conditionally unnecessary (keep both) or required (undecidable)
    WAIT(first, cudaStreamSynchronize(nullptr));
    handed = true;
    if (variant("started"))
        other = std::thread(other_thread);
    add_slowly(device + count, device, count);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(both, cudaStreamSynchronize(nullptr)); // sync: required
    look(host, 7);
    looked = true;
    if (!planted::proving())
        while (!read_it)
            continue;
    look(host, 7);
    expect("second", sum(second, count), 8 * count);
    over = true;
    other.join();
    if (variant("writes")) {
        std::vector<int> found(count);
        expect("read", read(ends[0], found.data(), bytes), bytes);
        expect("sum", sum(found.data(), count), 7 * count);
    }
}
