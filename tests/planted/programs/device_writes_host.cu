// The device itself brings a result to the host's memory: by a copy "within the device" to the device's address of
// pinned memory, or by a set of pinned memory; the CPU reads it or does not.
// variants: copy, copy_unread, set, set_unread
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *busy = device_integers(count);
    int *host = pinned_integers(count);
    void *seen = nullptr;
    check(cudaHostGetDevicePointer(&seen, host, 0));
    fill(busy, count, 0x07070707, stream);
    if (variant("copy") || variant("copy_unread"))
        check(cudaMemcpyAsync(seen, busy, bytes, cudaMemcpyDeviceToDevice, stream));
    else
        check(cudaMemsetAsync(seen, 7, bytes, stream));
    WAIT(last, cudaStreamSynchronize(stream)); // sync: copy, set required, copy_unread, set_unread unnecessary
    if (variant("copy") || variant("set"))
        expect("sum", sum(host, count), 0x07070707LL * count);
}
