// Starts children: one by fork alone that does not use the GPU, one by fork and exec that does; and two threads that
// do.
#include <cuda_runtime_api.h>

#include <cstring>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static void use_gpu(int turns)
{
    void *device = nullptr;
    cudaMalloc(&device, 4096);
    for (int turn = 0; turn < turns; turn++) {
        cudaMemset(device, turn, 4096);
        cudaDeviceSynchronize();
    }
    cudaFree(device);
}

int main(int count, char **arguments)
{
    if (count > 1 && !std::strcmp(arguments[1], "child")) {
        use_gpu(7);
        return 0;
    }
    int status = 0;
    pid_t idle = fork();
    if (idle == 0)
        _exit(0);
    waitpid(idle, &status, 0);
    pid_t other = fork();
    if (other == 0) {
        execl("/proc/self/exe", arguments[0], "child", static_cast<char *>(nullptr));
        _exit(1);
    }
    waitpid(other, &status, 0);
    std::thread first(use_gpu, 3), second(use_gpu, 5);
    first.join();
    second.join();
    return status;
}
