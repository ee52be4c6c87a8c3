// An event is waited for that no work comes before: it is never recorded, or not before the first turn of a loop.
// variants: never, later
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaEvent_t event;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    for (int turn = 0; turn < 3; turn++) {
        if (turn == 0)
            WAIT(before, cudaEventSynchronize(event)); // sync: unnecessary
        else
            WAIT(of_event, cudaEventSynchronize(event)); // sync: never unnecessary, later required
        if (variant("later") && turn > 0)
            expect("sum", sum(host, count), (7 + turn - 1) * count);
        fill(device, count, 7 + turn);
        DOWNLOAD_ASYNC(host, device, bytes);
        if (variant("later"))
            check(cudaEventRecord(event));
    }
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(host, count), 9 * count);
}
