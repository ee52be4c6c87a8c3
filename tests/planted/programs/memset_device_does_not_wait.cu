// cudaMemset of device memory does not wait: the download is read after a wait of its own, which a set follows or not.
// variants: set, none
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaDeviceSynchronize()); // sync: set required, none unnecessary
    if (variant("set")) {
        check(cudaMemset(device, 0, bytes));
        expect("sum", sum(host, count), 7 * count);
    }
}
