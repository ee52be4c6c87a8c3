// Two threads work one after the other, each on its own stream; each wait covers only its own stream.
// variants: read, never
#include "planted.h"

#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *host[2] = {pinned_integers(count), pinned_integers(count)};
    cudaStream_t streams[2] = {independent_stream(), independent_stream()};
    for (int index = 0; index < 2; ++index) {
        int *device = device_integers(count);
        for (int turn = 0; turn <= 2 * index; ++turn)
            fill(device, count, 7 + index, streams[index]);
        DOWNLOAD_ASYNC(host[index], device, bytes, streams[index]);
    }
    std::thread first([&] {
        WAIT(first, cudaStreamSynchronize(streams[0])); // sync: read required, never unnecessary
    });
    first.join();
    if (variant("read"))
        expect("first", sum(host[0], count), 7 * count);
    std::thread second([&] {
        WAIT(second, cudaStreamSynchronize(streams[1])); // sync: required
    });
    second.join();
    expect("second", sum(host[1], count), 8 * count);
}
