// What the program finds in errno after driver calls is what it put there.
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>

#define KEEPS(call)                                                                                                    \
    do {                                                                                                               \
        errno = ENOTTY;                                                                                                \
        call;                                                                                                          \
        std::printf("%s: %d\n", #call, errno == ENOTTY);                                                               \
    } while (false)

int main()
{
    constexpr size_t bytes = 4096, large = 200000;
    void *device = nullptr, *pinned = nullptr;
    char *pageable = static_cast<char *>(std::malloc(large));
    KEEPS(cudaMalloc(&device, bytes));
    KEEPS(cudaMallocHost(&pinned, bytes));
    KEEPS(cudaMemset(device, 7, bytes));
    KEEPS(cudaMemcpy(pageable, device, bytes, cudaMemcpyDeviceToHost));
    KEEPS(cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, nullptr));
    KEEPS(cudaStreamSynchronize(nullptr));
    KEEPS(cudaMemcpy(device, pageable, bytes, cudaMemcpyHostToDevice));
    KEEPS(std::free(pageable));
    KEEPS(cudaFreeHost(pinned));
    KEEPS(cudaFree(device));
}
