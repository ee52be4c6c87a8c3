// What lies beside a download, on its page, is used so often that watching the page is given up.
#include <cstdio>
#include <cuda_runtime_api.h>

int main()
{
    constexpr int bytes = 64, turns = 40000;
    void *device = nullptr, *page = nullptr;
    cudaMalloc(&device, bytes);
    cudaMallocHost(&page, 4096);
    volatile int *counter = static_cast<int *>(page) + 512;
    *counter = 0;
    cudaMemcpyAsync(page, device, bytes, cudaMemcpyDeviceToHost, nullptr);
    cudaDeviceSynchronize();
    for (int turn = 0; turn < turns; ++turn)
        *counter = *counter + 1;
    std::printf("%d\n", *counter);
    return *counter != turns;
}
