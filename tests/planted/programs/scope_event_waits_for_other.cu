// The stream of an event waited for another stream's event: a wait for the one covers the other's work too.
// variants: joined, apart
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = independent_stream();
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7, first);
    DOWNLOAD_ASYNC(host, device, bytes, first);
    if (variant("joined")) {
        check(cudaEventRecord(event, first));
        check(cudaStreamWaitEvent(second, event, 0));
    } else {
        WAIT(own, cudaStreamSynchronize(first)); // sync: apart required, joined absent
    }
    WAIT(last, cudaStreamSynchronize(second)); // sync: joined required, apart unnecessary
    expect("sum", sum(host, count), 7 * count);
}
