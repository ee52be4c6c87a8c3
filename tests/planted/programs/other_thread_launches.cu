// One thread waits for work, and tells another by a flag, which later launches on a stream of its own what builds on
// it. Meanwhile the first thread waits for its second work. Or the first thread launches that itself, after both waits.
// variants: other, itself
#include "planted.h"

#include <atomic>
#include <chrono>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static std::atomic<bool> flag{false};

void program()
{
    cudaStream_t first = independent_stream(), second = independent_stream();
    int *host = pinned_integers(2 * count), *device = device_integers(3 * count);
    auto build = [&] {
        add_slowly(device + count, device, count, second);
        DOWNLOAD_ASYNC(host, device + count, bytes, second);
        WAIT(built, cudaStreamSynchronize(second)); // sync: required
        expect("built", sum(host, count), 8 * count);
    };
    std::thread other([&] {
        while (!flag.load(std::memory_order_acquire))
            std::this_thread::yield();
        if (!planted::proving()) /* later than the second wait, which nothing but time sees to */
            std::this_thread::sleep_for(std::chrono::milliseconds(std::getenv("VGPU_CONFIGURATION") ? 1200 : 150));
        if (variant("other"))
            build();
    });
    fill(device, count, 7, first);
    WAIT(for_first, cudaStreamSynchronize(first)); // sync: other required, itself unnecessary
    flag.store(true, std::memory_order_release);
    add_slowly(device + 2 * count, device, count, first);
    DOWNLOAD_ASYNC(host + count, device + 2 * count, bytes, first);
    WAIT(for_second, cudaStreamSynchronize(first)); // sync: required
    expect("second", sum(host + count, count), 8 * count);
    if (variant("itself"))
        build();
    other.join();
}
