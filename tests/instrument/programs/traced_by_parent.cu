/* Asks to be traced by its parent, as programs do that want to know whether a debugger is there. */
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <cuda_runtime_api.h>
#include <sys/ptrace.h>

static void ask()
{
    long result = ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    std::printf("traced: %s\n", result == -1 ? std::strerror(errno) : "done");
}

int main()
{
    void *device = nullptr, *result = nullptr;
    if (cudaMalloc(&device, 4096) != cudaSuccess || cudaMallocHost(&result, 4096) != cudaSuccess)
        return 1;
    ask();
    ask();
    if (cudaMemset(device, 7, 4096) != cudaSuccess ||
        cudaMemcpy(result, device, 4096, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 1;
    std::printf("%d\n", *static_cast<const char *>(result));
    return 0;
}
