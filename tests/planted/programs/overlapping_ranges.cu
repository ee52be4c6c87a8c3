// The second download arrives over a part of the first. An event tells when the first has arrived, whose own part is
// read then; the rest is read after the wait for all, or never.
// variants: own, all
#include "planted.h"

constexpr int count = 4096;
constexpr size_t bytes = 2 * count * sizeof(int);

void program()
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *device = device_integers(2 * count);
    int *host = pinned_integers(3 * count);
    fill(device, 2 * count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    check(cudaEventRecord(event));
    fill(device, 2 * count, 8);
    DOWNLOAD_ASYNC(host + count, device, bytes);
    WAIT(first, cudaEventSynchronize(event)); // sync: required
    expect("own", sum(host, count), 7 * count);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: own unnecessary, all required
    if (variant("all"))
        expect("all", sum(host + count, 2 * count), 8 * 2 * count);
}
