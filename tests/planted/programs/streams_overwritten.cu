// Without the wait, a set on a second stream would overwrite what a kernel of the first is still reading.
// variants: other, same
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = variant("other") ? independent_stream() : first;
    cudaEvent_t filled;
    check(cudaEventCreateWithFlags(&filled, cudaEventDisableTiming));
    int *read = device_integers(count);
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    fill(read, count, 7, first);
    check(cudaEventRecord(filled, first));
    add_slowly(made, read, count, first);
    WAIT(between, cudaStreamSynchronize(first)); // sync: other required, same unnecessary
    check(cudaStreamWaitEvent(second, filled, 0));
    check(cudaMemsetAsync(read, 0, bytes, second));
    add_slowly(used, made, count, first);
    DOWNLOAD_ASYNC(host, used, bytes, first);
    WAIT(last, cudaStreamSynchronize(first)); // sync: required
    expect("sum", sum(host, count), 9 * count);
}
