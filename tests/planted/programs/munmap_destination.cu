// munmap of the pages in which a download arrives, and other pages in their place; or the pages stay.
// variants: unmapped, kept
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void *map(void *where, int flags)
{
    return mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

void program()
{
    int *device = device_integers(count);
    int *host = static_cast<int *>(map(nullptr, 0));
    int *next = static_cast<int *>(map(nullptr, 0));
    host[0] = 0;
    check(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaDeviceSynchronize()); // sync: unmapped required, kept unnecessary
    if (variant("unmapped")) {
        munmap(host, bytes);
        next = static_cast<int *>(map(host, MAP_FIXED));
    }
    next[1] = 1;
    settle();
    expect("sum", sum(next, count), 1);
}
