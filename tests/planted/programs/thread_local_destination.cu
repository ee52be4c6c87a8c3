// A download arrives in a variable of the thread, next to what the C library and others keep there; it is read. Or a
// wait for a kernel alone.
// variants: read, kernel
#include "planted.h"

constexpr int count = 512;

thread_local int host[count];

void program()
{
    int *device = device_integers(count);
    host[0] = 1;
    fill(device, count, 7);
    if (variant("read")) {
        DOWNLOAD(copy, host, device, sizeof host); // sync: read required, kernel absent
        expect("sum", sum(host, count), 7 * count);
    } else {
        WAIT(last, cudaDeviceSynchronize()); // sync: kernel unnecessary, read absent
        expect("own", host[0], 1);
    }
}
