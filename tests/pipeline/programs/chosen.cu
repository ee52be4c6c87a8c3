/* Three waits in a loop: the first and the third are for results that are used, the second for nothing. */
#include <cuda_runtime_api.h>

enum { TIMES = 5, BYTES = 1 << 16 };

int main()
{
    volatile char *first = nullptr, *third = nullptr;
    void *device = nullptr;
    cudaMallocHost((void **)&first, BYTES);
    cudaMallocHost((void **)&third, BYTES);
    cudaMalloc(&device, BYTES);
    int sum = 0;
    for (volatile int time = 0; time < TIMES; time = time + 1) {
        cudaMemcpyAsync((void *)first, device, BYTES, cudaMemcpyDeviceToHost);
        cudaDeviceSynchronize(); /* first */
        sum += first[0];
        cudaMemsetAsync(device, time, BYTES);
        cudaDeviceSynchronize(); /* second */
        cudaMemcpyAsync((void *)third, device, BYTES, cudaMemcpyDeviceToHost);
        cudaDeviceSynchronize(); /* third */
        sum += third[0];
    }
    return sum == -1;
}
