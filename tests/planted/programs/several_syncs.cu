// Two waits cover one download; the CPU reads after the second, so that the first is needless while the second stays.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: read conditionally unnecessary (keep second), never unnecessary
    WAIT(first, cudaStreamSynchronize(nullptr));
    WAIT(second, cudaDeviceSynchronize()); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
