// A loop downloads, waits, and reads what came in each turn, in one of 107, in all but these, or up to a turn. What
// is always used after the same wait is watched now and again only, and counts as used otherwise.
// variants: each, some, most, until
#include "by_habit.h"

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    for (int turn = 0; turn < turns(); ++turn) {
        fill(device, count, turn);
        DOWNLOAD_ASYNC(host, device, count * sizeof(int));
        if (is("each"))
            WAIT(always, cudaStreamSynchronize(nullptr)); // sync: each required, some, most, until absent
        else
            // sync: each absent, some, most, until required and unnecessary
            check(cudaStreamSynchronize(nullptr));
        if (reads(turn))
            expect("sum", sum(host, count), 1LL * turn * count);
    }
}
