// Three streams take turns, and each also brings something to one place of all, where nobody looks, or the CPU does at
// the end: then it matters whose comes last.
// variants: unread, read
#include "planted.h"

constexpr int count = 1024, turns = 6;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *told = pinned_integers(count), *device[3], *host[3];
    cudaStream_t streams[3];
    for (int place = 0; place < 3; ++place) {
        streams[place] = independent_stream();
        device[place] = device_integers(count);
        host[place] = pinned_integers(turns * count);
    }
    for (int turn = 0; turn < turns; ++turn) {
        const int place = turn % 3;
        for (int more = 0; more < turns - turn; ++more)
            fill(device[place], count, turn, streams[place]);
        DOWNLOAD_ASYNC(host[place] + turn * count, device[place], bytes, streams[place]); // transfer: needed
        // transfer: copy
        DOWNLOAD_ASYNC(told, device[place], bytes, streams[place]);
        if (turn < turns - 1) {
            // sync: unread unnecessary or conditionally unnecessary, read required
            WAIT(each, cudaStreamSynchronize(streams[place]));
        }
    }
    WAIT(all, cudaDeviceSynchronize()); // sync: required
    long long total = 0;
    for (int turn = 0; turn < turns; ++turn)
        total += host[turn % 3][turn * count + 9];
    expect("total", total, turns * (turns - 1) / 2);
    if (variant("read"))
        expect("told", told[9], turns - 1);
}
