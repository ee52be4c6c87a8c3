// A wait for one device before work of another one that uses what the first one did, or something else. Which memory
// a kernel reaches is not followed from device to device: any may use host memory that another one's writes.
// variants: alone, copied
#include "planted.h"

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    check(cudaSetDevice(0));
    int *first = device_integers(count);
    cudaStream_t producer = independent_stream();
    check(cudaSetDevice(1));
    int *second = device_integers(count);
    int *host = pinned_integers(count);
    cudaStream_t consumer = independent_stream();

    check(cudaSetDevice(0));
    fill(first, count, 3, producer);
    WAIT(of_first, cudaDeviceSynchronize()); // sync: alone required (undecidable), copied required
    check(cudaSetDevice(1));
    if (variant("copied"))
        check(cudaMemcpyPeerAsync(second, 1, first, 0, bytes, consumer));
    else
        fill(second, count, 3, consumer);
    DOWNLOAD_ASYNC(host, second, bytes, consumer);
    WAIT(of_second, cudaStreamSynchronize(consumer)); // sync: required
    expect("second", sum(host, count), 3 * count);
}
