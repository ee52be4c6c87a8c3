// Data goes to the other device, is worked on there, and comes to the host from there. A wait for the first device
// after the copy orders the second one's work after it, unless an event does.
// variants: event, wait, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    check(cudaSetDevice(0));
    cudaStream_t first = independent_stream();
    int *made = device_integers(count);
    cudaEvent_t sent;
    check(cudaEventCreateWithFlags(&sent, cudaEventDisableTiming));
    check(cudaSetDevice(1));
    cudaStream_t second = independent_stream();
    int *got = device_integers(count), *result = device_integers(count), *host = pinned_integers(count);
    check(cudaSetDevice(0));
    fill(made, count, 7, first);
    check(cudaMemcpyPeerAsync(got, 1, made, 0, bytes, first));
    check(cudaEventRecord(sent, first));
    check(cudaSetDevice(1));
    if (variant("event"))
        check(cudaStreamWaitEvent(second, sent, 0));
    // sync: event unnecessary, wait required, never required (undecidable)
    WAIT(of_first, cudaStreamSynchronize(first));
    add_slowly(result, got, count, second);
    DOWNLOAD_ASYNC(host, result, bytes, second);
    WAIT(of_second, cudaStreamSynchronize(second)); // sync: event, wait required, never unnecessary
    if (!variant("never"))
        expect("sum", sum(host, count), 8 * count);
    settle();
}
