// Work on the legacy default stream comes after that of all blocking streams, and not after that of others.
// variants: blocking, independent
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first;
    check(cudaStreamCreateWithFlags(&first, variant("blocking") ? cudaStreamDefault : cudaStreamNonBlocking));
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    fill(made, count, 7, first);
    WAIT(between, cudaStreamSynchronize(first)); // sync: blocking unnecessary, independent required
    add_slowly(used, made, count, nullptr);
    DOWNLOAD_ASYNC(host, used, bytes, nullptr);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
