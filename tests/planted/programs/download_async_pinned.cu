// An asynchronous download into pinned memory that the CPU reads after the wait, or never.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    check(cudaMemcpyAsync(host, device, count * sizeof(int), cudaMemcpyDeviceToHost));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
