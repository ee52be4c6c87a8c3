// Work on the legacy default stream between two blocking streams orders them, though it has nothing to do with either.
// variants: between, nothing
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t first, second;
    check(cudaStreamCreate(&first));
    check(cudaStreamCreate(&second));
    int *made = device_integers(count);
    int *used = device_integers(count);
    int *host = pinned_integers(count);
    int *unrelated = device_integers(1);
    fill(made, count, 7, first);
    WAIT(middle, cudaDeviceSynchronize()); // sync: between unnecessary, nothing required
    if (variant("between"))
        check(cudaMemsetAsync(unrelated, 0, sizeof(int), nullptr));
    add_slowly(used, made, count, second);
    DOWNLOAD_ASYNC(host, used, bytes, second);
    WAIT(last, cudaStreamSynchronize(second)); // sync: required
    expect("sum", sum(host, count), 8 * count);
}
