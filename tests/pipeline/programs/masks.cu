/* Counts how often the signal mask is set while it waits a thousand times in one place, and prints that. An unwinder
 * that starts from registers sets it twice for each frame. */
#include <csignal>
#include <cstdio>

#include <cuda_runtime_api.h>
#include <sys/syscall.h>
#include <unistd.h>

static long calls;

extern "C" int sigprocmask(int how, const sigset_t *set, sigset_t *old) noexcept
{
    calls++;
    return (int)syscall(SYS_rt_sigprocmask, how, set, old, 8);
}

int main()
{
    cudaFree(nullptr);
    cudaDeviceSynchronize();
    const long before = calls;
    for (int i = 0; i < 1000; i++)
        cudaDeviceSynchronize();
    std::printf("%ld\n", calls - before);
    return 0;
}
