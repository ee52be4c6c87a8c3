// An "asynchronous" download into pageable memory waits by itself; a wait after it covers the same work.
// variants: alone, twice, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pageable_integers(count);
    fill(device, count, 7);
    cudaMemcpyKind kind = cudaMemcpyDeviceToHost;
    // sync: alone required, twice conditionally unnecessary (keep last), never unnecessary
    WAIT_OR(copy, cudaMemcpyAsync(host, device, bytes, kind), download_later(host, device, bytes));
    if (variant("twice"))
        WAIT(last, cudaStreamSynchronize(nullptr)); // sync: twice required, alone, never absent
    if (!variant("never"))
        expect("sum", sum(host, count), 7 * count);
}
