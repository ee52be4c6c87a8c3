// open(2) reads a path that a download brought, or another.
// variants: destination, other
#include "planted.h"

#include <fcntl.h>

constexpr int count = 4;

void program()
{
    int *device = device_integers(count);
    char *host = reinterpret_cast<char *>(pinned_integers(count + 1));
    fill(device, count, 0x2f2f2f2f); // "////…", the root
    DOWNLOAD_ASYNC(host, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: destination required, other unnecessary
    expect("opened", open(variant("destination") ? host : "/", O_RDONLY) >= 0, 1);
}
