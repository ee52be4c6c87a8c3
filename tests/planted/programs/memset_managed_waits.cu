// cudaMemset of managed memory waits, so that a download before it has arrived when the CPU reads; or nobody reads.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *managed = nullptr;
    check(cudaMallocManaged(&managed, bytes, cudaMemAttachGlobal));
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: read required, never unnecessary
    WAIT_OR(set, cudaMemset(managed, 0, bytes), cudaMemsetAsync(managed, 0, bytes));
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
