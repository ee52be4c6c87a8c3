// cudaFreeHost waits by itself; the wait before it is needed only when the CPU reads what came.
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
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, never unnecessary or conditionally unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
    WAIT(free, cudaFreeHost(host)); // sync: unnecessary
}
