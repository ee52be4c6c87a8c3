// A wait for another stream covers nothing of the download; the wait for its own stream does.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    cudaStream_t other = independent_stream();
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7, stream);
    DOWNLOAD_ASYNC(host, device, bytes, stream);
    WAIT(own, cudaStreamSynchronize(stream));  // sync: read required, never unnecessary
    WAIT(wrong, cudaStreamSynchronize(other)); // sync: unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
