// The time between two events can be read only when the later one has happened; or nobody asks for it.
// variants: asked, unasked
#include "planted.h"

void program()
{
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&stop));
    int *device = device_integers(1);
    check(cudaEventRecord(start));
    fill(device, 1, 7);
    check(cudaEventRecord(stop));
    WAIT(last, cudaEventSynchronize(stop)); // sync: asked required, unasked unnecessary
    if (variant("asked")) {
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, start, stop));
        expect("milliseconds", milliseconds > 1, 1);
    }
}
