/* A program whose first process ends before its child, as a daemon's: left_behind HOW. */
#include <csignal>
#include <cstdlib>
#include <string>

#include <cuda_runtime_api.h>
#include <unistd.h>

enum { CALLS = 100, PAUSE_US = 10000 };

static void use_gpu(int calls)
{
    int *device = nullptr, value;
    cudaMalloc(reinterpret_cast<void **>(&device), sizeof value);
    for (int call = 0; call < calls; call++) {
        cudaMemcpy(&value, device, sizeof value, cudaMemcpyDeviceToHost);
        usleep(PAUSE_US);
    }
}

int main(int, char **arguments)
{
    const std::string how = arguments[1];
    if (how == "stopped") /* beside work that is over */
        use_gpu(1);
    if (fork() == 0) {
        setsid();
        if (how == "stopped")
            raise(SIGSTOP);
        use_gpu(how == "endless" ? 1 << 30 : CALLS);
        _exit(0);
    }
    return 0;
}
