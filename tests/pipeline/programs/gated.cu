/* Two threads that wait for nothing, at one line, and the main thread at another. The argument is the exit status. */
#include <cstdlib>
#include <thread>

#include <cuda_runtime_api.h>

enum { WORKS = 5, MAIN = 2 };

__attribute__((noinline)) static void work(int *device, int times)
{
    for (int time = 0; time < times; time++) {
        cudaMemsetAsync(device, time, sizeof *device);
        cudaDeviceSynchronize(); /* by the threads */
    }
}

int main(int count, char **arguments)
{
    int *device = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof *device);
    std::thread(work, device, WORKS).join();
    std::thread(work, device, WORKS + 2).join();
    for (volatile int time = 0; time < MAIN; time = time + 1) { /* not unrolled: one call */
        cudaMemsetAsync(device, time, sizeof *device);
        cudaDeviceSynchronize(); /* by main */
    }
    return count > 1 ? atoi(arguments[1]) : 0;
}
