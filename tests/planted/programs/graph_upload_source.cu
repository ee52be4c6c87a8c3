// A captured graph reads pinned memory, which the CPU overwrites afterwards, or only reads.
// variants: write, read
#include "planted.h"

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    cudaStream_t stream = independent_stream();
    int *device = device_integers(count), *other = device_integers(count);
    int *host = pinned_integers(count, 7);
    cudaGraphExec_t graph = captured(stream, [&] {
        fill(other, count, 1, stream);
        UPLOAD_ASYNC(device, host, bytes, stream);
    });
    check(cudaGraphLaunch(graph, stream));
    WAIT(last, cudaStreamSynchronize(stream)); // sync: write required, read unnecessary
    if (variant("write"))
        for (int index = 0; index < count; ++index)
            host[index] = 1;
    expect("source", sum(host, count), (variant("write") ? 1 : 7) * count);
    if (!planted::complete()) {
        int *arrived = pinned_integers(count);
        check(cudaMemcpyAsync(arrived, device, bytes, cudaMemcpyDeviceToHost, stream));
        settle();
        expect("arrived", sum(arrived, count), 7 * count);
    }
}
