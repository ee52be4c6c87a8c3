// A loop launches kernels on two places of a large managed block, waits, and reads what they wrote in each turn, in one
// of 107, in all but these, or up to a turn. It reads at the first place, but at the second one in some turns of those
// that all read. Only the page that was always used first is watched after a while.
// variants: each, some, most, until
#include "by_habit.h"

void program()
{
    constexpr int half = 1 << 18;
    void *memory = nullptr;
    check(cudaMallocManaged(&memory, 2 * half * sizeof(int), cudaMemAttachGlobal));
    int *block = static_cast<int *>(memory);
    for (int turn = 0; turn < turns(); ++turn) {
        for (int *place : {block, block + half})
            fill(place, count, turn);
        if (is("each"))
            WAIT(always, cudaStreamSynchronize(nullptr)); // sync: each required, some, most, until absent
        else
            // sync: each absent, some, most, until required and unnecessary
            check(cudaStreamSynchronize(nullptr));
        if (reads(turn))
            expect("sum", sum(block + (is("each") && is_odd(turn) ? half : 0), count), 1LL * turn * count);
    }
}
