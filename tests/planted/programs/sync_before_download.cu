// A wait between the kernel and the download of its result does nothing: the stream orders them.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    WAIT(between, cudaDeviceSynchronize()); // sync: unnecessary
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
