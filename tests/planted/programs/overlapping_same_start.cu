// A short and a long download begin at the same byte, on two streams one after the other; the tail is read or not.
// variants: tail, head
#include "planted.h"

constexpr int count = 2048;

void program()
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    check(cudaEventRecord(event));
    fill(device, count, 8);
    DOWNLOAD_ASYNC(host, device, 16 * sizeof(int));
    WAIT(first, cudaEventSynchronize(event)); // sync: tail required, head unnecessary or conditionally unnecessary
    if (variant("tail"))
        expect("tail", sum(host + count - 16, 16), 7 * 16);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("head", sum(host, 16), 8 * 16);
}
