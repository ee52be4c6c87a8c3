// A captured graph copies to pinned memory, which the CPU reads or never reads.
// variants: read, never
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    cudaGraphExec_t graph = captured(stream, [&] {
        fill(device, count, 7, stream);
        DOWNLOAD_ASYNC(host, device, bytes, stream);
    });
    for (int round = 0; round < 2; ++round)
        check(cudaGraphLaunch(graph, stream));
    WAIT(last, cudaStreamSynchronize(stream)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
