// Only the last byte of a large download is read; or only the byte after it, on the same page.
// variants: last, behind
#include "planted.h"

constexpr size_t bytes = (1 << 20) + 100;

void program()
{
    int *device = device_integers(bytes / sizeof(int));
    char *host = reinterpret_cast<char *>(pinned_integers(bytes / sizeof(int) + 100));
    fill(device, bytes / sizeof(int), 0x01010101);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaDeviceSynchronize()); // sync: last required, behind unnecessary
    if (variant("last"))
        expect("byte", host[bytes - 1], 1);
    else
        expect("byte", host[bytes], 0);
}
