/* Downloads of one piece and of several, to pageable and to pinned memory, and uploads. */
#include <cstdlib>

#include <cuda_runtime_api.h>

enum { SMALL = 1 << 17, LARGE = 1 << 20 };

int main()
{
    int *device = nullptr;
    void *pinned = nullptr, *pageable = malloc(LARGE);
    cudaMalloc(reinterpret_cast<void **>(&device), LARGE);
    cudaMallocHost(&pinned, LARGE);
    for (int bytes = SMALL; bytes <= LARGE; bytes *= LARGE / SMALL) {
        cudaMemcpy(device, pageable, bytes, cudaMemcpyHostToDevice);
        cudaMemcpy(pageable, device, bytes, cudaMemcpyDeviceToHost);
        cudaMemcpy(pinned, device, bytes, cudaMemcpyDeviceToHost);
        cudaDeviceSynchronize();
    }
    free(pageable);
    return 0;
}
