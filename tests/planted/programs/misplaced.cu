// The CPU works for a long time between the wait and the first use of the download: the wait belongs after the work. Or
// the use comes at once and the work after it. Or the program takes the time right after the wait, or between the work
// and the use: then the wait belongs where it is.
// variants: work_first, use_first, timed, timed_later
#include "planted.h"

#include <chrono>

using Clock = std::chrono::steady_clock;

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void work()
{
    if (planted::complete())
        for (volatile long turn = 0; turn < 5'000'000;)
            turn = turn + 1;
}

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    Clock::time_point start, end;
    if (variant("timed") || variant("timed_later"))
        start = end = Clock::now();
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: work_first misplaced, use_first, timed, timed_later required
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("timed"))
        end = Clock::now();
    if (!variant("use_first"))
        work();
    if (variant("timed_later"))
        end = Clock::now();
    expect("sum", sum(host, count), 7 * count);
    if (variant("use_first"))
        work();
    expect("time passed", end >= start, 1);
}
