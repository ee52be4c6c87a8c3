// The event is recorded before the work that the second stream needs, or after it.
// variants: before, behind
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
    if (variant("before"))
        check(cudaEventRecord(event, first));
    fill(made, count, 7, first);
    if (variant("behind"))
        check(cudaEventRecord(event, first));
    WAIT(between, cudaDeviceSynchronize()); // sync: before required, behind unnecessary
    check(cudaStreamWaitEvent(second, event, 0));
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
