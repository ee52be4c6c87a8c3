// One thread waits for a first result and for a second one, and meets the reader at a barrier after the first wait or
// after both. The reader looks at the first result only later. So it relies on the wait before the barrier: after both,
// the second one is enough.
// variants: first, both, again
#include "planted.h"

#include <chrono>
#include <pthread.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static pthread_barrier_t meeting;

static void meet(int times)
{
    for (int time = 0; time < times; time++)
        pthread_barrier_wait(&meeting);
}

void program()
{
    int *first = pinned_integers(count), *second = pinned_integers(count);
    int *device = device_integers(2 * count);
    pthread_barrier_init(&meeting, nullptr, 2);
    const int times = variant("again") ? 3 : 1;
    std::thread reader([&] {
        meet(times);
        if (!planted::proving()) /* later than the second wait, which nothing but time sees to */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 900 : 60));
        expect("first", sum(first, count), 7 * count);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(first, device, bytes);
    // sync: first required, both, again conditionally unnecessary (keep for_second)
    WAIT(for_first, cudaStreamSynchronize(nullptr));
    if (variant("first"))
        meet(1);
    add_slowly(device + count, device, count);
    DOWNLOAD_ASYNC(second, device + count, bytes);
    WAIT(for_second, cudaStreamSynchronize(nullptr)); // sync: required
    if (!variant("first"))
        meet(times);
    expect("second", sum(second, count), 8 * count);
    reader.join();
}
