/* Asks how many GPUs there are; then, if told to, for more memory than any has, or for a little. */
#include <cstring>

#include <cuda_runtime_api.h>

int main(int, char **arguments)
{
    int count = 0;
    void *memory = nullptr;
    cudaGetDeviceCount(&count);
    if (std::strcmp(arguments[1], "large") == 0)
        cudaMalloc(&memory, static_cast<std::size_t>(1) << 60);
    if (std::strcmp(arguments[1], "small") == 0)
        cudaMalloc(&memory, 64);
    return 0;
}
