// The event is recorded a second time after the download: a wait for it covers the download. Or only the first time.
// variants: again, once
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    check(cudaEventRecord(event));
    DOWNLOAD_ASYNC(host, device, bytes);
    if (variant("again"))
        check(cudaEventRecord(event));
    WAIT(by_event, cudaEventSynchronize(event)); // sync: again required, once unnecessary
    if (variant("again"))
        expect("sum", sum(host, count), 7 * count);
}
