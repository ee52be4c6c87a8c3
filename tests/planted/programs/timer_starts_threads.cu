// A timer starts a thread at each tick, which looks at the result or does not; as these threads end, it ticks on.
// variants: looks, counts
#include <atomic>
#include <csignal>
#include <ctime>

#include "planted.h"

constexpr int count = 2048, ticks_awaited = 4;

static int *host;
static std::atomic<long> seen, ticks;

static void tick(sigval)
{
    if (variant("looks"))
        seen = host[count - 1];
    ++ticks;
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: looks required, counts unnecessary
    sigevent event = {};
    event.sigev_notify = SIGEV_THREAD;
    event.sigev_notify_function = tick;
    timer_t timer;
    const itimerspec each = {{0, 500'000}, {0, 500'000}};
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &each, nullptr) != 0)
        return;
    while (ticks < ticks_awaited)
        usleep(200);
    timer_delete(timer);
    usleep(2000);
    expect("seen", seen, variant("looks") ? 7 : 0);
    settle();
}
