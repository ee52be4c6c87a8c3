// A glance at what one device has not delivered yet, after a wait for the other one, takes nothing from the later wait.
// variants: used, never
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
    int *first = download_from(0, 3, 3);
    int *second = download_from(1, 5, 1);
    WAIT(of_second, cudaDeviceSynchronize()); // sync: required
    expect("glance", *static_cast<volatile int *>(first) % 3, 0);
    expect("second", sum(second, count), 5 * count);
    check(cudaSetDevice(0));
    WAIT(of_first, cudaDeviceSynchronize()); // sync: used required, never unnecessary
    if (variant("used"))
        expect("first", sum(first, count), 3 * count);
}
