// cudaEventSynchronize orders two streams through the CPU; or the second work is on the same stream.
// variants: other, same
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = variant("other") ? independent_stream() : first;
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    fill(made, count, 7, first);
    check(cudaEventRecord(event, first));
    WAIT(between, cudaEventSynchronize(event)); // sync: other required, same unnecessary
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
