// cudaMemcpyDefault leaves it to the addresses which way the copy goes: what it repeats is found all the same.
// variants: same, other
#include "planted.h"

constexpr int count = 16 * 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *source = pinned_integers(count, 5);
    int *other = pinned_integers(count, 6);
    int *result = pinned_integers(count);
    check(cudaMemcpyAsync(device, source, bytes, cudaMemcpyDefault)); // transfer: needed (first)
    // transfer: same no-op (of first), other needed
    check(cudaMemcpyAsync(device, variant("same") ? source : other, bytes, cudaMemcpyDefault));
    add_slowly(device, device, count);
    DOWNLOAD_ASYNC(result, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("sum", sum(result, count), (variant("same") ? 6 : 7) * count);
}
