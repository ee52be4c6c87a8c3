// A loop waits three times before it uses two results, and reads the second one in each turn, in one of 107, in all but
// these, or up to a turn. What is always used together with another result counts as used with it in most turns. The
// first wait is required for a third result, and covers the first one.
// variants: each, some, most, until
#include "by_habit.h"

void program()
{
    int *device = device_integers(count);
    int *at_once = pinned_integers(count), *first = pinned_integers(count), *second = pinned_integers(count);
    fill(device, count, 0);
    for (int turn = 0; turn < turns(); ++turn) {
        const int value = 3 * turn;
        add_slowly(device, device, count); // with fills alone, the trace would take minutes
        DOWNLOAD_ASYNC(first, device, count * sizeof(int));
        DOWNLOAD_ASYNC(at_once, device, count / 2 * sizeof(int));
        WAIT(early, cudaStreamSynchronize(nullptr)); // sync: required
        expect("at once", sum(at_once, count / 2), 1LL * (value + 1) * (count / 2));
        fill(device, count, value + 2);
        DOWNLOAD_ASYNC(second, device, count * sizeof(int));
        // sync: conditionally unnecessary or unnecessary
        WAIT(between, cudaStreamSynchronize(nullptr));
        add_slowly(device, device, count);
        if (is("each"))
            WAIT(always, cudaStreamSynchronize(nullptr)); // sync: each required, some, most, until absent
        else
            // sync: each absent, some, most, until required and unnecessary
            check(cudaStreamSynchronize(nullptr));
        expect("first", sum(first, count), 1LL * (value + 1) * count);
        if (reads(turn))
            expect("second", sum(second, count), 1LL * (value + 2) * count);
    }
}
