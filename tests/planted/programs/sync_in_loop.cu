// A wait in a loop: what each iteration downloads is read in that iteration, or only the last after the loop.
// variants: each, last
#include "planted.h"

constexpr int count = 1024;
constexpr int turns = 3;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    long long total = 0;
    for (int turn = 1; turn <= turns; ++turn) {
        fill(device, count, turn);
        DOWNLOAD_ASYNC(host, device, bytes);
        if (variant("each")) {
            WAIT(inner, cudaStreamSynchronize(nullptr)); // sync: each required, last absent
            total += sum(host, count);
        } else {
            // The wait of a turn covers what the next turn overwrites in stream order.
            // sync: last unnecessary or conditionally unnecessary, each absent
            WAIT(outer, cudaStreamSynchronize(nullptr));
        }
    }
    if (variant("last")) {
        WAIT(end, cudaDeviceSynchronize()); // sync: last required, each absent
        total = sum(host, count);
    }
    expect("total", total, (variant("each") ? 1 + 2 + 3 : 3) * count);
}
