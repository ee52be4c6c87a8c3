// A second download into the same memory overwrites the first in stream order: only the last wait is relied on.
// variants: once, twice
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: once required, twice unnecessary or conditionally unnecessary
    WAIT(first, cudaStreamSynchronize(nullptr));
    if (variant("once")) {
        expect("sum", sum(host, count), 7 * count);
        return;
    }
    fill(device, count, 8);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(second, cudaStreamSynchronize(nullptr)); // sync: twice required, once absent
    expect("sum", sum(host, count), 8 * count);
}
