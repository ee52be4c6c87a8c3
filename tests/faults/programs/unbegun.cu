// Forks a child that is killed once its recording has a file, and before anything is in it. Link it with -rdynamic, so
// that the collector calls this `posix_fallocate`.
#include <cuda_runtime_api.h>

#include <csignal>
#include <cstdio>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t parent;

extern "C" int posix_fallocate(int file, off_t offset, off_t length)
{
    if (getpid() != parent)
        kill(getpid(), SIGKILL);
    return static_cast<int>(syscall(SYS_fallocate, file, 0, offset, length));
}

int main()
{
    int host[1024] = {}, status = 0;
    void *device = nullptr;
    parent = getpid();
    cudaMalloc(&device, sizeof host);
    const pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, &status, 0);
    cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice);
    cudaDeviceSynchronize();
    cudaFree(device);
    return WIFSIGNALED(status) ? 0 : 1;
}
