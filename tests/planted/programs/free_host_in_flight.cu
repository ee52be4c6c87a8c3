// Memory that a download is on its way to is freed: that waits, and the memory is gone afterwards.
// variants: large
#include "planted.h"

constexpr int count = 1 << 20;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(free, cudaFreeHost(host)); // sync: unnecessary
}
