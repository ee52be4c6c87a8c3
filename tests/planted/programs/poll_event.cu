// The program polls an event after the download and reads; a wait between kernel and download is needless either way.
// Or it polls an event before the download, and the wait is needed.
// variants: behind, before
#include "planted.h"

#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    if (variant("before"))
        check(cudaEventRecord(event));
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    if (variant("behind")) {
        check(cudaEventRecord(event));
        fill(busy, 1, 0);
    }
    while (cudaEventQuery(event) == cudaErrorNotReady)
        std::this_thread::yield();
    if (variant("behind"))
        expect("sum", sum(host, count), 7 * count);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: behind unnecessary, before required
    if (variant("before"))
        expect("sum", sum(host, count), 7 * count);
}
