// Two downloads arrive on one page by two waits; the CPU reads one of them, or both.
// variants: first, both
#include "planted.h"

constexpr int count = 64;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t streams[2] = {independent_stream(), independent_stream()};
    int *device = device_integers(2 * count);
    int *page = pinned_integers(2 * count);
    fill(device, count, 7, streams[0]);
    DOWNLOAD_ASYNC(page, device, bytes, streams[0]);
    fill(device + count, count, 8, streams[1]);
    fill(device + count, count, 9, streams[1]);
    DOWNLOAD_ASYNC(page + count, device + count, bytes, streams[1]);
    WAIT(one, cudaStreamSynchronize(streams[0])); // sync: required
    expect("first", sum(page, count), 7 * count);
    WAIT(two, cudaStreamSynchronize(streams[1])); // sync: first unnecessary, both required
    if (variant("both"))
        expect("second", sum(page + count, count), 9 * count);
}
