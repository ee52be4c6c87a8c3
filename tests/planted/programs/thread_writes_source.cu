// Another thread writes the source of an upload when the first has waited and told it; or it writes elsewhere.
// variants: source, other
#include "planted.h"

#include <atomic>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pageable_integers(count, 5);
    int *result = pageable_integers(count);
    std::atomic<bool> ready{false};
    std::thread writer([&] {
        while (!ready.load(std::memory_order_acquire))
            std::this_thread::yield();
        int *written = variant("source") ? source : other;
        for (int index = 0; index < count; ++index)
            written[index] = 100;
    });
    fill(busy, 1, 0);
    UPLOAD_ASYNC(device, source, bytes);
    WAIT(before, cudaStreamSynchronize(nullptr)); // sync: source required, other unnecessary
    ready.store(true, std::memory_order_release);
    writer.join();
    add_slowly(device, device, count);
    DOWNLOAD(copy, result, device, bytes); // sync: required
    expect("sum", sum(result, count), 6 * count);
}
