// The CPU works for a long time between the wait and the first use of the download: the wait belongs after the work. Or
// the use comes at once and the work after it. Or the program takes the time right after the wait, or between the work
// and the use, or asks the driver for the time between events or whether the stream is done: then the wait belongs
// where it is.
// variants: work_first, use_first, timed, timed_later, events, asked
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
    cudaEvent_t first, second;
    check(cudaEventCreate(&first));
    check(cudaEventCreate(&second));
    Clock::time_point start, end;
    if (variant("timed") || variant("timed_later"))
        start = end = Clock::now();
    check(cudaEventRecord(first));
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    check(cudaEventRecord(second));
    // sync: work_first misplaced, use_first required, timed, timed_later, events, asked in place
    WAIT(last, cudaStreamSynchronize(nullptr));
    float milliseconds = 1;
    if (variant("events"))
        check(cudaEventElapsedTime(&milliseconds, first, second));
    cudaError_t done = variant("asked") ? cudaStreamQuery(nullptr) : cudaSuccess;
    if (variant("timed"))
        end = Clock::now();
    if (!variant("use_first"))
        work();
    if (variant("timed_later"))
        end = Clock::now();
    expect("sum", sum(host, count), 7 * count);
    if (variant("use_first"))
        work();
    expect("time passed", end >= start && milliseconds > 0, 1);
    expect("done", done, cudaSuccess);
}
