/* timed_frees HOW TURNS: gives each of its kernels a buffer of its own, frees that at once, and says whether all of
 * their time passed between two reads of a clock. */
#include <cstdio>
#include <cstdlib>
#include <string>

#include "clocks.h"
#include "scene.h"

/* Lasts half a millisecond by configuration. */
__global__ void use_buffer(int *buffer)
{
    if (threadIdx.x == 0)
        buffer[0] = 1;
}
PORTABLE_KERNEL(use_buffer);

static constexpr double kernel_s = 0.0005;

int main(int, char **arguments)
{
    const std::string how = arguments[1];
    const int turns = std::atoi(arguments[2]);
    REQUIRE(cudaDeviceSynchronize());
    const double start = now(how);
    for (int turn = 0; turn < turns; turn++) {
        int *buffer = on_device();
        LAUNCH(use_buffer, dim3(1), dim3(1), 0, nullptr, buffer);
        REQUIRE(cudaFree(buffer));
    }
    std::printf("%s\n", now(how) - start >= turns * kernel_s ? "all kernels" : "less than all kernels");
}
