// Uses the GPU a little, then ends in the way that its argument names.
#include <cuda_runtime_api.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

static void use_gpu()
{
    int host[1024] = {};
    void *device = nullptr;
    cudaMalloc(&device, sizeof host);
    for (int turn = 0; turn < 5; turn++) {
        cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
        cudaDeviceSynchronize();
    }
    cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("sum %d\n", host[0] + host[1023]);
    std::fflush(stdout);
    cudaFree(device);
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "";
    use_gpu();
    if (!std::strcmp(how, "crash"))
        std::raise(SIGSEGV);
    if (!std::strcmp(how, "kill"))
        std::raise(SIGKILL);
    if (!std::strcmp(how, "abort"))
        std::abort();
    if (!std::strcmp(how, "fail"))
        return 3;
    if (!std::strcmp(how, "family") && fork() == 0)
        setsid(); // it leaves the program's process group
    if (!std::strcmp(how, "hang") || !std::strcmp(how, "family"))
        for (;;)
            pause();
    return 0;
}
