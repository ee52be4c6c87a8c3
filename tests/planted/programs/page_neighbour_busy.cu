// Other data on the page is used many thousand times; the downloaded bytes once at the end, or never.
// variants: end, never
// like: page_neighbour
#include "planted.h"

constexpr int count = 16;

void program()
{
    int *device = device_integers(count);
    int *page = pinned_integers(1024, 1);
    volatile int *counter = page + 512;
    *counter = 0;
    fill(device, count, 7);
    DOWNLOAD_ASYNC(page, device, count * sizeof(int));
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: end required, never unnecessary
    for (int turn = 0; turn < (planted::complete() ? 5000 : 10); ++turn)
        *counter = *counter + 1;
    expect("counted", *counter > 0, 1);
    if (variant("end"))
        expect("sum", sum(page, count), 7 * count);
}
