// One thread downloads and waits, and tells the other by an atomic flag, which then reads, or does not.
// variants: read, never
#include "planted.h"

#include <atomic>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *host = pinned_integers(count);
    std::atomic<bool> ready{false};
    std::thread reader([&] {
        while (!ready.load(std::memory_order_acquire))
            std::this_thread::yield();
        if (variant("read"))
            expect("sum", sum(host, count), 7 * count);
    });
    int *device = device_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary
    ready.store(true, std::memory_order_release);
    reader.join();
}
