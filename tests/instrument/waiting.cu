// Waits in each of five ways, as often as its argument says, while the GPU is busy.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>

int main(int count, char **arguments)
{
    const int rounds = count > 1 ? std::atoi(arguments[1]) : 1;
    const size_t bytes = size_t{8} << 20;
    cudaStream_t stream;
    cudaEvent_t event;
    void *device, *pinned;
    int host[64];
    cudaStreamCreate(&stream);
    cudaEventCreate(&event);
    cudaMalloc(&device, bytes);
    cudaMallocHost(&pinned, bytes);
    const auto work = [&] { cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice, stream); };
    for (int round = 0; round < rounds; round++) {
        void *block;
        cudaMalloc(&block, bytes);
        work();
        cudaDeviceSynchronize();
        work();
        cudaStreamSynchronize(stream);
        work();
        cudaEventRecord(event, stream);
        cudaEventSynchronize(event);
        work();
        cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
        work();
        cudaFree(block);
    }
    std::printf("%d rounds\n", rounds);
    return 0;
}
