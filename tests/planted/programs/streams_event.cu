// An event orders the second stream after the first, so that the wait of the CPU is needless; or there is no event.
// variants: ordered, unordered
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = independent_stream();
    cudaEvent_t made_event;
    check(cudaEventCreateWithFlags(&made_event, cudaEventDisableTiming));
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    fill(made, count, 7, first);
    if (variant("ordered"))
        check(cudaEventRecord(made_event, first));
    WAIT(between, cudaStreamSynchronize(first)); // sync: ordered unnecessary, unordered required
    if (variant("ordered"))
        check(cudaStreamWaitEvent(second, made_event, 0));
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
