/* timed_uploads HOW MEMORY TURNS: uploads its next input behind each of its kernels and overwrites it at once, and says
 * whether all of their time passed between two reads of a clock, and what was uploaded. MEMORY is that of the input:
 * `pinned` or `pageable`. */
#include <cstdio>
#include <cstdlib>
#include <string>

#include "clocks.h"
#include "scene.h"

/* Lasts half a millisecond by configuration. */
__global__ void add_first(int *to, const int *from)
{
    if (threadIdx.x == 0)
        to[0] += from[0];
}
PORTABLE_KERNEL(add_first);

static constexpr double kernel_s = 0.0005;

int main(int, char **arguments)
{
    const std::string how = arguments[1];
    const int turns = std::atoi(arguments[3]);
    int *input = std::string(arguments[2]) == "pinned" ? pinned() : on_host();
    int *sum = on_device(), *on_gpu = on_device();
    REQUIRE(cudaMemset(sum, 0, bytes));
    REQUIRE(cudaMemset(on_gpu, 0, bytes));
    REQUIRE(cudaDeviceSynchronize());
    const double start = now(how);
    for (int turn = 0; turn < turns; turn++) {
        LAUNCH(add_first, dim3(1), dim3(1), 0, nullptr, sum, on_gpu);
        for (int i = 0; i < count; i++)
            input[i] = turn + i;
        REQUIRE(cudaMemcpy(on_gpu, input, bytes, cudaMemcpyHostToDevice));
    }
    const double passed_s = now(how) - start;
    std::memset(input, 0, bytes);
    int result = 0;
    REQUIRE(cudaMemcpy(&result, sum, sizeof result, cudaMemcpyDeviceToHost));
    std::printf("%s\n%d\n", passed_s >= turns * kernel_s ? "all kernels" : "less than all kernels", result);
}
