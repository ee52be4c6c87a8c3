// A kernel writes mapped pinned memory, through the device pointer that was asked for; the CPU reads it or does not.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;

void program()
{
    void *host = nullptr, *device = nullptr;
    check(cudaHostAlloc(&host, count * sizeof(int), cudaHostAllocMapped));
    check(cudaHostGetDevicePointer(&device, host, 0));
    fill(static_cast<int *>(device), count, 7);
    WAIT(last, cudaDeviceSynchronize()); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(static_cast<int *>(host), count), 7 * count);
}
