// Two threads wait for the same result, and both read it, or the one that asked for it: each relies on its own wait.
// variants: both, first, neither
#include "planted.h"

#include <atomic>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count), *host = pinned_integers(count);
    std::atomic<int> enqueued{0}, waited{0};
    std::thread other([&] {
        while (!enqueued)
            std::this_thread::yield();
        WAIT(others, cudaStreamSynchronize(cudaStreamLegacy)); // sync: both required, first, neither unnecessary
        if (variant("both"))
            expect("other", sum(host, count), 7 * count);
        waited = 1;
    });
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    enqueued = 1;
    WAIT(own, cudaStreamSynchronize(cudaStreamLegacy)); // sync: both, first required, neither unnecessary
    if (variant("both") || variant("first"))
        expect("own", sum(host, count), 7 * count);
    other.join();
}
