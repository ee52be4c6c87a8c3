// cudaHostUnregister waits: what the CPU reads after it relies on that.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pageable_integers(count);
    check(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(unregister, cudaHostUnregister(host)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
