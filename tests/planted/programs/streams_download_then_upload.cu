// What one stream downloads another uploads again: the GPU reads the host memory, so only the order of the work counts.
// variants: other, same
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first = independent_stream();
    cudaStream_t second = variant("other") ? independent_stream() : first;
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *between = pinned_integers(count);
    int *host = pinned_integers(count);
    fill(made, count, 7, first);
    DOWNLOAD_ASYNC(between, made, bytes, first);
    // sync: other required, same unnecessary or conditionally unnecessary
    WAIT(middle, cudaStreamSynchronize(first));
    UPLOAD_ASYNC(used, between, bytes, second); // transfer: copy
    add_slowly(used, used, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
