// Work on a blocking stream comes after that of the legacy default stream, and that on others does not.
// variants: blocking, independent
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t second;
    check(cudaStreamCreateWithFlags(&second, variant("blocking") ? cudaStreamDefault : cudaStreamNonBlocking));
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    fill(made, count, 7, nullptr);
    WAIT(between, cudaStreamSynchronize(nullptr)); // sync: blocking unnecessary, independent required
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
