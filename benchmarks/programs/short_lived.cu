/* short_lived THREADS: starts threads one after the other, each of which allocates, launches, waits and frees. Prints
 * the microseconds that each took. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "portable_kernel.h"
#include "runtime.h"

__global__ void step(char *data)
{
    if (threadIdx.x == 0)
        data[0] += 1;
}
PORTABLE_KERNEL(step);

static void work()
{
    char *device = nullptr;
    check(cudaMalloc(reinterpret_cast<void **>(&device), 400000));
    LAUNCH(step, dim3(1), dim3(1), 0, nullptr, device);
    check(cudaDeviceSynchronize());
    check(cudaFree(device));
}

int main(int, char **arguments)
{
    const int threads = std::atoi(arguments[1]);
    work();
    const auto began = std::chrono::steady_clock::now();
    for (int thread = 0; thread < threads; thread++)
        std::thread(work).join();
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    std::printf("%.1f\n", took.count() / threads);
}
