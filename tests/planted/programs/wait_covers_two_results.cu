// One wait covers two results, which are read at different times; a later wait covers nothing that the first did not.
// variants: both, second, first, loop
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count), *busy = device_integers(count);
    int *first = pinned_integers(count), *second = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(first, device, bytes);
    add_slowly(busy, device, count);
    DOWNLOAD_ASYNC(second, busy, bytes);
    // sync: both, first, loop required, second conditionally unnecessary (keep next)
    WAIT(wait, cudaStreamSynchronize(nullptr));
    if (!variant("second"))
        expect("first", sum(first, count), 7 * count);
    for (int turn = 0; turn < (variant("loop") ? 3 : 1); ++turn) {
        fill(busy, count, turn);
        WAIT(next, cudaDeviceSynchronize()); // sync: both, first, loop unnecessary, second required
    }
    if (!variant("first"))
        expect("second", sum(second, count), 8 * count);
}
