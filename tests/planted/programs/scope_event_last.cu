// The wait for an event is the only one that covers the download; a later wait for an older event does not.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaEvent_t older, newer;
    check(cudaEventCreateWithFlags(&older, cudaEventDisableTiming));
    check(cudaEventCreateWithFlags(&newer, cudaEventDisableTiming));
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    check(cudaEventRecord(older));
    DOWNLOAD_ASYNC(host, device, bytes);
    check(cudaEventRecord(newer));
    WAIT(good, cudaEventSynchronize(newer));    // sync: read required, never unnecessary
    WAIT(useless, cudaEventSynchronize(older)); // sync: unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
