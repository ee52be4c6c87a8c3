// One device copies what another filled: the wait puts the copy behind that, or an event does and the wait is not
// needed.
// variants: wait, event
#include "planted.h"

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    check(cudaSetDevice(1));
    int *filled = device_integers(count);
    cudaStream_t producer = independent_stream();
    cudaEvent_t over;
    check(cudaEventCreateWithFlags(&over, cudaEventDisableTiming));
    check(cudaSetDevice(0));
    int *copied = device_integers(count);
    int *host = pinned_integers(count);
    cudaStream_t consumer = independent_stream();

    check(cudaSetDevice(1));
    fill(filled, count, 7, producer);
    check(cudaEventRecord(over, producer));
    check(cudaSetDevice(0));
    if (variant("event"))
        check(cudaStreamWaitEvent(consumer, over, 0));
    WAIT(between, cudaStreamSynchronize(producer)); // sync: wait required, event unnecessary
    check(cudaMemcpyPeerAsync(copied, 0, filled, 1, bytes, consumer));
    DOWNLOAD_ASYNC(host, copied, bytes, consumer);
    WAIT(last, cudaStreamSynchronize(consumer)); // sync: required
    expect("sum", sum(host, count), 7 * count);
}
