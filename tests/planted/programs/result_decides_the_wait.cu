// A thread learns from a small result how large the next one is, and hands only its size to another thread, which reads
// that many integers of it. A third thread waits on behalf of both, or the first one does.
// variants: by_thread, by_itself
#include "planted.h"

#include <thread>

constexpr int count = 1024;

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count), *size = pinned_integers(1), *result = pinned_integers(count);
    fill(device, count, 600, stream);
    DOWNLOAD_ASYNC(size, device, sizeof(int), stream);
    // sync: required
    WAIT(first, cudaStreamSynchronize(stream));
    const int wanted = *size < count ? *size : 0;
    fill(device, count, 601, stream);
    DOWNLOAD_ASYNC(result, device, wanted * sizeof(int), stream);
    auto waits = [&] {
        WAIT(second, cudaStreamSynchronize(stream)); // sync: required
    };
    if (variant("by_thread"))
        std::thread(waits).join();
    else
        waits();
    long long total = 0;
    std::thread([&] { total = sum(result, wanted); }).join();
    expect("sum", total, 600ll * 601);
}
