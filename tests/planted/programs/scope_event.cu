// A wait for an event covers the work before its record, and not what came after it.
// variants: before, behind
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
    if (variant("behind"))
        check(cudaEventRecord(event));
    DOWNLOAD_ASYNC(host, device, bytes);
    if (variant("before"))
        check(cudaEventRecord(event));
    // sync: before conditionally unnecessary (keep last), behind unnecessary
    WAIT(by_event, cudaEventSynchronize(event));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(host, count), 7 * count);
}
