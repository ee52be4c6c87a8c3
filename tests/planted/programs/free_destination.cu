// free() of registered memory in which a download arrives: its next owner would lose data. Or it is kept.
// variants: freed, kept
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
    WAIT(last, cudaDeviceSynchronize()); // sync: freed required, kept unnecessary
    if (variant("freed"))
        std::free(host);
    int *next = pageable_integers(count, 1);
    settle();
    expect("sum", sum(next, count), count);
}
