// Kernels write managed memory on two streams, turn by turn, and events order each stream's work after the other's. The
// CPU waits for the second stream only, and reads what the first one's kernels wrote: in each turn, at the end, or
// never.
// variants: each, end, never
#include "planted.h"

constexpr int count = 1024, turns = 40;

void program()
{
    int *first = nullptr, *second = nullptr;
    check(cudaMallocManaged(reinterpret_cast<void **>(&first), count * sizeof(int), cudaMemAttachGlobal));
    check(cudaMallocManaged(reinterpret_cast<void **>(&second), count * sizeof(int), cudaMemAttachGlobal));
    cudaStream_t before, after;
    check(cudaStreamCreateWithFlags(&before, cudaStreamNonBlocking));
    check(cudaStreamCreateWithFlags(&after, cudaStreamNonBlocking));
    cudaEvent_t written, over;
    check(cudaEventCreateWithFlags(&written, cudaEventDisableTiming));
    check(cudaEventCreateWithFlags(&over, cudaEventDisableTiming));
    for (int turn = 0; turn < turns; ++turn) {
        fill(first, count, turn, before);
        check(cudaEventRecord(written, before));
        check(cudaStreamWaitEvent(after, written, 0));
        fill(second, count, turn, after);
        check(cudaEventRecord(over, after));
        check(cudaStreamWaitEvent(before, over, 0));
        // sync: each required, end unnecessary or conditionally unnecessary, never unnecessary or conditionally unnecessary
        WAIT(turn, cudaStreamSynchronize(after));
        if (variant("each"))
            expect("sum", sum(first, count), turn * count);
    }
    WAIT(last, cudaDeviceSynchronize()); // sync: each unnecessary, end required, never unnecessary
    if (variant("end"))
        expect("sum", sum(first, count), (turns - 1) * count);
}
