// The CPU writes where a download arrives: without the wait the download destroys what it wrote.
// variants: inside, beside
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(2 * count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaDeviceSynchronize()); // sync: inside required, beside unnecessary
    int *written = variant("inside") ? host + count / 2 : host + count + count / 2;
    *written = 1;
    settle();
    expect("written", *written, 1);
}
