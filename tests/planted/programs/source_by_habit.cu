// A loop uploads pinned memory, waits, and writes it again in each turn, in one of 107, in all but these, or up to a
// turn. What is always written after the same wait is watched now and again only, and counts as written otherwise.
// variants: each, some, most, until
#include "by_habit.h"

void program()
{
    int *busy = device_integers(1);
    int *device = device_integers(count);
    int *result = pageable_integers(count);
    int *host = pinned_integers(count, 0);
    int uploaded = 0;
    for (int turn = 0; turn < turns(); ++turn) {
        uploaded = host[0];
        fill(busy, 1, turn);
        // transfer: each needed, most needed and no-op, some, until needed and no-op and unseen
        UPLOAD_ASYNC(device, host, count * sizeof(int));
        if (is("each"))
            WAIT(always, cudaStreamSynchronize(nullptr)); // sync: each required, some, most, until absent
        else
            // sync: each absent, some, most, until required and unnecessary
            check(cudaStreamSynchronize(nullptr));
        if (reads(turn))
            for (int index = 0; index < count; ++index)
                host[index] = turn + 1;
    }
    DOWNLOAD(copy, result, device, count * sizeof(int)); // sync: required
    expect("sum", sum(result, count), 1LL * uploaded * count);
}
