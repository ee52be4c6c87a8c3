// The program polls the stream until it is idle and then reads: the wait that follows is not what it relies on. Or it
// only looks once, and relies on the wait.
// variants: until_idle, once
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
    if (variant("until_idle")) {
        while (cudaStreamQuery(nullptr) == cudaErrorNotReady)
            std::this_thread::yield();
        expect("sum", sum(host, count), 7 * count);
    } else {
        cudaStreamQuery(nullptr); // either answer: a busy machine may keep the program from asking in time
    }
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: until_idle unnecessary, once required
    if (variant("once"))
        expect("sum", sum(host, count), 7 * count);
}
