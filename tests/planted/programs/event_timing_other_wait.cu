// The time between two events relies on a wait for the device as well; or on a wait that came before the events.
// variants: after, before
#include "planted.h"

void program()
{
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&stop));
    int *device = device_integers(1);
    fill(device, 1, 6);
    if (variant("before"))
        WAIT(early, cudaDeviceSynchronize()); // sync: before unnecessary, after absent
    check(cudaEventRecord(start));
    fill(device, 1, 7);
    check(cudaEventRecord(stop));
    WAIT(late, cudaDeviceSynchronize()); // sync: required
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, stop));
    expect("milliseconds", milliseconds > 1, 1);
}
