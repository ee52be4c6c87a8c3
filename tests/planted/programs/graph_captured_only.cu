// A copy to the same memory is captured after the real one, and never done: the wait is for the real one.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7, stream);
    DOWNLOAD_ASYNC(host, device, bytes, stream); // transfer: needed (first)
    captured(stream, [&] {
        DOWNLOAD_ASYNC(host, device, bytes, stream);
        UPLOAD_ASYNC(device, host, bytes, stream);
    });
    WAIT(last, cudaStreamSynchronize(stream)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
