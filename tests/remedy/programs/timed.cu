/* timed HOW TURNS: waits for each of its kernels, and says whether all of their time passed between two reads of a
 * clock. */
#include <cstdio>
#include <cstdlib>
#include <string>

#include "clocks.h"
#include "portable_kernel.h"

/* Lasts half a millisecond by configuration. */
__global__ void count_up(int *to)
{
    if (threadIdx.x == 0)
        to[0] += 1;
}
PORTABLE_KERNEL(count_up);

static constexpr double kernel_s = 0.0005;

static void check(cudaError_t error)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

int main(int, char **arguments)
{
    const std::string how = arguments[1];
    const int turns = std::atoi(arguments[2]);
    int *counter;
    check(cudaMalloc(reinterpret_cast<void **>(&counter), sizeof *counter));
    check(cudaMemset(counter, 0, sizeof *counter));
    check(cudaDeviceSynchronize());
    const double start = now(how);
    for (int turn = 0; turn < turns; turn++) {
        LAUNCH(count_up, dim3(1), dim3(1), 0, nullptr, counter);
        check(cudaDeviceSynchronize());
    }
    std::printf("%s\n", now(how) - start >= turns * kernel_s ? "all kernels" : "less than all kernels");
}
