// The program asks after a wait whether the work is over, and acts upon the answer; or it does not ask.
// variants: stream, event, unasked
#include "planted.h"

constexpr int count = 1024;

void program()
{
    cudaStream_t stream = independent_stream();
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *device = device_integers(count), skipped = 0;
    for (int turn = 0; turn < 3; ++turn) {
        fill(device, count, turn, stream);
        check(cudaEventRecord(event, stream));
        WAIT(wait, cudaStreamSynchronize(stream)); // sync: stream, event required, unasked unnecessary
        if (variant("stream"))
            skipped += cudaStreamQuery(stream) != cudaSuccess;
        if (variant("event"))
            skipped += cudaEventQuery(event) != cudaSuccess;
    }
    expect("skipped", skipped, 0);
    settle();
}
