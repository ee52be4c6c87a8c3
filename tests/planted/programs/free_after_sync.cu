// cudaFree after the wait waits for the same work: the explicit wait is needless while the free stays. Or the free
// comes after the use.
// variants: before_use, after_use
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: before_use conditionally unnecessary (keep early), after_use required
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("before_use"))
        FREE(early, device); // sync: before_use required, after_use absent
    expect("sum", sum(host, count), 7 * count);
    if (variant("after_use"))
        FREE(late, device); // sync: after_use unnecessary, before_use absent
}
