// The per-thread default stream is a blocking stream of its own: the legacy default stream comes after it.
// variants: legacy, independent
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t second = variant("legacy") ? cudaStreamLegacy : independent_stream();
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    fill(made, count, 7, cudaStreamPerThread);
    WAIT(between, cudaStreamSynchronize(cudaStreamPerThread)); // sync: legacy unnecessary, independent required
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
