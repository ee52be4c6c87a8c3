// One thread waits for the GPU and ends; the thread that joined it reads the download, or does not.
// variants: read, never
#include "planted.h"

#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    std::thread waiting([] {
        WAIT(last, cudaStreamSynchronize(cudaStreamLegacy)); // sync: read required, never unnecessary
    });
    waiting.join();
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
