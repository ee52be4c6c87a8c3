/* Waits for the GPU twice each time: before a free, and in the free. */
#include <cuda_runtime_api.h>

enum { TIMES = 20, BIG = 32 << 20, SMALL = 4096 };

int main()
{
    void *big = nullptr;
    cudaMalloc(&big, BIG);
    for (volatile int time = 0; time < TIMES; time = time + 1) { /* not unrolled: one call */
        void *small = nullptr;
        cudaMalloc(&small, SMALL);
        cudaMemsetAsync(big, time, BIG);
        cudaDeviceSynchronize();
        cudaFree(small);
    }
    return 0;
}
