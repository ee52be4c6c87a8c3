// Events order the third stream after the second and that after the first; or a link of the chain is missing.
// variants: chain, broken
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void order(cudaStream_t behind, cudaStream_t before)
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    check(cudaEventRecord(event, before));
    check(cudaStreamWaitEvent(behind, event, 0));
}

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = independent_stream();
    cudaStream_t third = independent_stream();
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    fill(made, count, 7, first);
    if (variant("chain"))
        order(second, first);
    order(third, second);
    WAIT(between, cudaDeviceSynchronize()); // sync: chain unnecessary, broken required
    add_slowly(used, made, count, third);
    DOWNLOAD_ASYNC(host, used, bytes, third);
    WAIT(last, cudaStreamSynchronize(third)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
