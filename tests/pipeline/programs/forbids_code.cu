// Forbids that its memory becomes executable, before it uses the GPU or afterwards.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <sys/prctl.h>

enum { SET_MDWE = 65, REFUSE_EXEC_GAIN = 1 }; // linux/prctl.h

static void forbid()
{
    if (prctl(SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) != 0)
        std::perror("prctl");
}

int main(int count, char **arguments)
{
    const bool late = count > 1 && !std::strcmp(arguments[1], "late");
    if (!late)
        forbid();
    int host[64] = {};
    void *device = nullptr;
    cudaMalloc(&device, sizeof host);
    cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
    if (late)
        forbid();
    cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost);
    std::printf("%d\n", host[3]);
    cudaFree(device);
    return 0;
}
