/* uploads TURNS BYTES [once]: an upload of the same bytes, a kernel and a download, TURNS times; with `once`, the first
 * upload alone, as after a change by hand (`by_hand.py`). Prints a sum of what came back. */
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "portable_kernel.h"
#include "runtime.h"

__global__ void step(char *data)
{
    if (threadIdx.x == 0)
        data[0] += 1;
}
PORTABLE_KERNEL(step);

int main(int count, char **arguments)
{
    const int turns = std::atoi(arguments[1]);
    const bool once = count > 3;
    std::vector<char> sent(std::atoi(arguments[2]), 1), received(sent.size());
    char *device = nullptr;
    check(cudaMalloc(reinterpret_cast<void **>(&device), sent.size()));
    unsigned long sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        if (turn == 0 || !once)
            check(cudaMemcpyAsync(device, sent.data(), sent.size(), cudaMemcpyHostToDevice));
        LAUNCH(step, dim3(1), dim3(1), 0, nullptr, device);
        check(cudaMemcpy(received.data(), device, received.size(), cudaMemcpyDeviceToHost));
        sum += received[1];
    }
    std::printf("%lu\n", sum);
}
