// A buffer is registered while it is watched: the system pins its pages, and would refuse protected ones.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    void *pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int *host = static_cast<int *>(pages);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: read required, never unnecessary
    check(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
