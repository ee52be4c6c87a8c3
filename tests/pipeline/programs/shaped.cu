/* Turns of a kernel, of CPU work beside it, of a wait for it, and of CPU work while the GPU is idle.
 *
 * Arguments: turns, then milliseconds of CPU work before the first kernel, beside each, and after each wait. The
 * kernel's time is that of the virtual GPU's configuration. */
#include <chrono>
#include <cstdlib>

#include "portable_kernel.h"

__global__ void work(int *data)
{
    data[0] = 1;
}
PORTABLE_KERNEL(work);

static void busy(double milliseconds)
{
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(milliseconds);
    while (std::chrono::steady_clock::now() < end)
        ;
}

__attribute__((noinline)) static void blame_host(double milliseconds)
{
    busy(milliseconds);
}

int main(int, char **arguments)
{
    int *device = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof *device);
    const int turns = std::atoi(arguments[1]);
    const double before = std::atof(arguments[2]), beside = std::atof(arguments[3]), after = std::atof(arguments[4]);
    busy(before);
    for (int turn = 0; turn < turns; turn++) {
        LAUNCH(work, dim3(1), dim3(1), 0, nullptr, device);
        busy(beside);
        cudaDeviceSynchronize();
        blame_host(after);
    }
    cudaDeviceSynchronize();
    return 0;
}
