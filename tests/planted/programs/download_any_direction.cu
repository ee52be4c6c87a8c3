// cudaMemcpyDefault leaves it to the addresses which way the copy goes.
// variants: read, never
// like: upload_any_direction_again
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    check(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDefault));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
