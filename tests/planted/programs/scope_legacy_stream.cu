// A wait for the legacy default stream covers the work of blocking streams; it does not cover that of others.
// variants: blocking, independent
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, variant("blocking") ? cudaStreamDefault : cudaStreamNonBlocking));
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7, stream);
    DOWNLOAD_ASYNC(host, device, bytes, stream);
    // sync: blocking conditionally unnecessary (keep legacy), independent required
    WAIT(own, cudaStreamSynchronize(stream));
    WAIT(legacy, cudaStreamSynchronize(nullptr)); // sync: blocking required, independent unnecessary
    expect("sum", sum(host, count), 7 * count);
}
