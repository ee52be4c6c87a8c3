// A loop launches two kernels on managed memory, waits, and reads what they wrote in each turn, in one of 107, in all
// but these, or up to a turn. What is always used after the same wait is watched now and again only, and counts as used
// otherwise.
// variants: each, some, most, until
#include "by_habit.h"

void program()
{
    void *memory = nullptr;
    check(cudaMallocManaged(&memory, count * sizeof(int), cudaMemAttachGlobal));
    int *block = static_cast<int *>(memory);
    for (int turn = 0; turn < turns(); ++turn) {
        for (const int value : {0, turn})
            fill(block, count, value);
        if (is("each"))
            WAIT(always, cudaStreamSynchronize(nullptr)); // sync: each required, some, most, until absent
        else
            // sync: each absent, some, most, until required and unnecessary
            check(cudaStreamSynchronize(nullptr));
        if (reads(turn))
            expect("sum", sum(block, count), 1LL * turn * count);
    }
}
