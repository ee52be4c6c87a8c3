/* Pairs of copies; the first one ends while the call that makes the second is under way. */
#include <cuda_runtime_api.h>

enum { BYTES = 1 << 20, PAIRS = 50 };

int main()
{
    void *from = nullptr, *to = nullptr;
    cudaMalloc(&from, BYTES);
    cudaMalloc(&to, BYTES);
    for (int pair = 0; pair < PAIRS; pair++) {
        cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDeviceToDevice);
        cudaMemcpyAsync(to, from, BYTES, cudaMemcpyDeviceToDevice);
        cudaDeviceSynchronize();
    }
    return 0;
}
