// cudaFree waits for the kernel that uses the memory; a free in stream order would not have to. The explicit wait
// before it adds nothing. Or the memory is freed in stream order.
// variants: free, stream_order
#include "planted.h"

constexpr int count = 1024;

void program()
{
    int *device = device_integers(count);
    void *pooled = nullptr;
    check(cudaMallocAsync(&pooled, count * sizeof(int), nullptr));
    fill(variant("free") ? device : static_cast<int *>(pooled), count, 7);
    // sync: free unnecessary or conditionally unnecessary, stream_order unnecessary
    WAIT(before, cudaDeviceSynchronize());
    if (variant("free"))
        FREE(free, device); // sync: free unnecessary, stream_order absent
    else
        check(cudaFreeAsync(pooled, nullptr));
    expect("freed", 1, 1);
}
