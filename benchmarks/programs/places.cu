/* places LEVELS WAITS: waits so often, for nothing, each time in another place of a search through a tree of so many
 * levels: each wait has a call stack of its own. */
#include <cstdlib>

#include <cuda_runtime_api.h>

static long waits_left;

__attribute__((noinline)) static int wait()
{
    waits_left--;
    return cudaStreamSynchronize(nullptr) + 1;
}

/* What comes after the calls keeps their frames. */
__attribute__((noinline)) static int search(int depth)
{
    if (waits_left <= 0)
        return 0;
    int found = depth == 0 ? wait() : search(depth - 1);
    if (depth > 0)
        found += search(depth - 1);
    __asm__ volatile("" : "+r"(found));
    return found;
}

int main(int count, char **arguments)
{
    int *device;
    if (count != 3 || cudaMalloc(reinterpret_cast<void **>(&device), sizeof *device) != cudaSuccess)
        return 1;
    waits_left = std::atol(arguments[2]);
    search(std::atoi(arguments[1]));
    return 0;
}
