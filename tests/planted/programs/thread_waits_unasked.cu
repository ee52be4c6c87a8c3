// A second thread waits for the device at the same time, but hands nothing over: the reader relies on its own wait.
// variants: own, idle
#include "planted.h"

#include <atomic>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    int *unrelated = device_integers(1);
    cudaStream_t other = independent_stream();
    std::atomic<bool> launched{false}, waited{false};
    std::thread second([&] {
        fill(unrelated, 1, 0, other);
        launched = true;
        WAIT(unasked, cudaStreamSynchronize(other)); // sync: unnecessary
        waited.store(true);
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    while (!launched) /* else nothing but this wait would order the other stream's work behind it */
        std::this_thread::yield();
    WAIT(own, cudaStreamSynchronize(nullptr)); // sync: own required, idle unnecessary
    if (variant("own"))
        expect("sum", sum(host, count), 7 * count);
    second.join();
    expect("waited", waited.load(), 1);
}
