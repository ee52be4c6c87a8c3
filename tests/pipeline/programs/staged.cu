/* Copies that are asynchronous by name: from pageable memory, from pinned memory, and few bytes. */
#include <cstdlib>

#include <cuda_runtime_api.h>

enum { BYTES = 1 << 20, FEW = 1 << 10 };

int main()
{
    void *device = nullptr, *pinned = nullptr, *pageable = calloc(1, BYTES);
    cudaMalloc(&device, BYTES);
    cudaMallocHost(&pinned, BYTES);
    cudaMemcpyAsync(device, pageable, BYTES, cudaMemcpyHostToDevice); /* staged up */
    cudaMemcpyAsync(pageable, device, FEW, cudaMemcpyDeviceToHost);   /* staged down */
    cudaMemcpyAsync(device, pinned, BYTES, cudaMemcpyHostToDevice);
    cudaMemcpyAsync(device, pageable, FEW, cudaMemcpyHostToDevice);
    return 0;
}
