// A stream that waits for an event waits for its last record at that time: later records do not order it.
// variants: earlier, latest
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = independent_stream();
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    check(cudaEventRecord(event, first));
    if (variant("earlier"))
        check(cudaStreamWaitEvent(second, event, 0));
    fill(made, count, 7, first);
    check(cudaEventRecord(event, first));
    if (variant("latest"))
        check(cudaStreamWaitEvent(second, event, 0));
    WAIT(between, cudaDeviceSynchronize()); // sync: earlier required, latest unnecessary
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
