// Kernels write managed memory turn by turn, and an event is waited for in each. The CPU reads what a turn wrote, or
// what all of them wrote.
// variants: each, end
#include "planted.h"

constexpr int count = 1024, turns = 40;

void program()
{
    void *read = nullptr, *untouched = nullptr;
    check(cudaMallocManaged(&read, count * sizeof(int), cudaMemAttachGlobal));
    check(cudaMallocManaged(&untouched, count * sizeof(int), cudaMemAttachGlobal));
    cudaEvent_t over;
    check(cudaEventCreateWithFlags(&over, cudaEventDisableTiming));
    for (int turn = 0; turn < turns; ++turn) {
        fill(static_cast<int *>(untouched), count, turn);
        fill(static_cast<int *>(read), count, turn);
        check(cudaEventRecord(over));
        WAIT(turn, cudaEventSynchronize(over)); // sync: each required, end unnecessary or conditionally unnecessary
        if (variant("each"))
            expect("sum", sum(static_cast<int *>(read), count), turn * count);
    }
    WAIT(last, cudaDeviceSynchronize()); // sync: each unnecessary, end required
    if (variant("end"))
        expect("sum", sum(static_cast<int *>(read), count), (turns - 1) * count);
}
