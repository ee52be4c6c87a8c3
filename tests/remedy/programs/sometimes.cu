/* sometimes KIND TURNS [EVERY]: what a correction does where it does not pay, and where it must wait now and then. */
#include <cstdio>
#include <cstdlib>
#include <string>

#include "portable_kernel.h"

/* Lasts half a millisecond by configuration. */
__global__ void count_up(int *to)
{
    if (threadIdx.x == 0)
        to[0] += 1;
}
PORTABLE_KERNEL(count_up);

static constexpr std::size_t size = 4 << 20;

static void check(cudaError_t error)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

/* The GPU has nothing else to do, and the result is looked at directly after the call: there is nothing to gain, and
 * memory is closed and opened for nothing. */
static long long downloads(int turns, int *counter)
{
    int *received = static_cast<int *>(std::malloc(size));
    long long sum = 0;
    for (int turn = 0; turn < turns; turn++) {
        check(cudaMemcpy(received, counter, size, cudaMemcpyDeviceToHost));
        sum += received[0] + turn;
    }
    return sum;
}

/* A free waits for the result that was asked for before it, which the program reads in the last of every so many turns
 * only. */
static long long frees(int turns, int every, int *counter)
{
    int *result;
    long long sum = 0;
    check(cudaMallocHost(reinterpret_cast<void **>(&result), sizeof *result));
    for (int turn = 0; turn < turns; turn++) {
        int *block;
        check(cudaMalloc(reinterpret_cast<void **>(&block), 4096));
        LAUNCH(count_up, dim3(1), dim3(1), 0, nullptr, counter);
        check(cudaMemcpyAsync(result, counter, sizeof *result, cudaMemcpyDeviceToHost, nullptr));
        check(cudaFree(block));
        if (turn % every == every - 1)
            sum += *result;
    }
    check(cudaDeviceSynchronize());
    return sum;
}

int main(int count, char **arguments)
{
    int *counter;
    check(cudaMalloc(reinterpret_cast<void **>(&counter), size));
    check(cudaMemset(counter, 0, size));
    const int turns = std::atoi(arguments[2]);
    const int every = count > 3 ? std::atoi(arguments[3]) : 10;
    const long long sum =
        arguments[1] == std::string("frees") ? frees(turns, every, counter) : downloads(turns, counter);
    std::printf("%lld\n", sum);
}
