/* Transfers from very many distinct stacks: a tree of calls from two places each, and a deep recursion. */
#include <cstdlib>

#include <cuda_runtime_api.h>

static int *device;

__attribute__((noinline)) static int download()
{
    int value = 0;
    cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
    return value;
}

/* The additions keep the frames. */
__attribute__((noinline)) static int search(int depth)
{
    if (depth == 0)
        return download() + 1;
    int left = search(depth - 1) + 1;
    int right = search(depth - 1) + 2;
    return left + right;
}

__attribute__((noinline)) static int descend(int depth)
{
    int here = download();
    return depth == 0 ? here : descend(depth - 1) + here + 1;
}

int main(int, char **arguments)
{
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof *device);
    cudaMemset(device, 0, sizeof *device);
    search(std::atoi(arguments[1]));
    descend(std::atoi(arguments[2]));
    return 0;
}
