// A synchronous upload makes its bytes ready for a kernel of an independent stream; or for one of the same stream.
// variants: independent, same
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t second = variant("same") ? nullptr : independent_stream();
    int *busy = device_integers(1);
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *source = pinned_integers(count, 7);
    int *host = pinned_integers(count);
    fill(busy, 1, 0);
    UPLOAD(upload, made, source, bytes); // sync: independent required, same unnecessary
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
