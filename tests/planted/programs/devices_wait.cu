// Each of two devices fills memory and brings it to the host: waiting for one says nothing about the other.
// variants: first, second, both
#include "planted.h"

constexpr int count = 4096;
constexpr size_t bytes = count * sizeof(int);

static int *download_from(int device, int value, int fills)
{
    check(cudaSetDevice(device));
    int *memory = device_integers(count);
    int *host = pinned_integers(count);
    for (int done = 0; done < fills; ++done)
        fill(memory, count, value);
    DOWNLOAD_ASYNC(host, memory, bytes);
    return host;
}

void program()
{
    int *first = download_from(0, 3, 2);
    int *second = download_from(1, 5, 1);
    WAIT(of_second, cudaDeviceSynchronize()); // sync: first unnecessary, second, both required
    if (!variant("first"))
        expect("second", sum(second, count), 5 * count);
    check(cudaSetDevice(0));
    WAIT(of_first, cudaDeviceSynchronize()); // sync: first, both required, second unnecessary
    if (!variant("second"))
        expect("first", sum(first, count), 3 * count);
}
