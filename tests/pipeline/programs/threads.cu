/* Many threads at once that begin, use the GPU from stacks of many depths, allocate, and end. */
#include <cstdlib>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <sys/mman.h>

enum { CALLS = 20, DEPTHS = 30, BYTES = 1 << 16 };

__attribute__((noinline)) static int use_gpu(int depth, const int *device)
{
    if (depth > 0)
        return use_gpu(depth - 1, device) + 1; /* the addition keeps the frame */
    int value = 0;
    cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
    void *mapped = mmap(nullptr, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(mapped, BYTES);
    free(malloc(BYTES));
    return value;
}

/* The arguments are how many rounds of threads there are, and how many threads in each. */
int main(int, char **arguments)
{
    const int rounds = atoi(arguments[1]), at_once = atoi(arguments[2]);
    int *device = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof *device);
    cudaMemset(device, 0, sizeof *device);
    for (int round = 0; round < rounds; round++) {
        std::vector<std::thread> threads;
        for (int thread = 0; thread < at_once; thread++)
            threads.emplace_back([=] {
                for (int call = 0; call < CALLS; call++)
                    use_gpu((thread * 7 + call) % DEPTHS, device);
            });
        for (auto &thread : threads)
            thread.join();
    }
    return 0;
}
