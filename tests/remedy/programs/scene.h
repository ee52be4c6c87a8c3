/* What the scenes of edges.cu have in common. */
#ifndef FFM_TEST_SCENE_H
#define FFM_TEST_SCENE_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include <cuda.h>

#include "portable_kernel.h"

static void require(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorName(error));
    std::exit(1);
}
#define REQUIRE(call) require(call, #call)

/* Lasts 20 ms by configuration. */
__global__ void fill(int *to, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        to[i] = value + i;
}
PORTABLE_KERNEL(fill);

/* To an address stored in memory. */
__global__ void fill_through(int **to, int value, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        (*to)[i] = value + i;
}
PORTABLE_KERNEL(fill_through);

__global__ void say(int number)
{
    std::printf("%d\n", number);
}
PORTABLE_KERNEL(say);

namespace
{

constexpr int count = 65536;
constexpr std::size_t bytes = count * sizeof(int);

int *on_device(std::size_t size = bytes)
{
    int *pointer = nullptr;
    REQUIRE(cudaMalloc(reinterpret_cast<void **>(&pointer), size));
    return pointer;
}

/* So large that the C library gives it its own pages. */
int *on_host()
{
    int *memory = static_cast<int *>(std::malloc(bytes));
    std::memset(memory, 0xff, bytes);
    return memory;
}

int *pinned(std::size_t size = bytes)
{
    int *memory = nullptr;
    REQUIRE(cudaMallocHost(reinterpret_cast<void **>(&memory), size));
    return memory;
}

void start_fill(int *to, int value)
{
    LAUNCH(fill, dim3(count / 256), dim3(256), 0, nullptr, to, value, count);
}

int sum(const int *values)
{
    unsigned result = 0;
    for (int i = 0; i < count; ++i)
        result += static_cast<unsigned>(values[i]);
    return static_cast<int>(result);
}

/* A result under way to `host`. */
int *download(int *host, int value)
{
    static int *device = on_device();
    start_fill(device, value);
    REQUIRE(cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost));
    return host;
}

void *driver(const char *name)
{
    return dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), name);
}

} // namespace

#endif
