// A program that is linked with the driver, and so begins with it, forks a child that reads what came, or that does
// not.
// variants: read, other
// like: fork_child_reads
#include "planted.h"

#include <cuda.h>
#include <sys/wait.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int version = 0;
    check(static_cast<cudaError_t>(cuDriverGetVersion(&version)));
    int *device = device_integers(count);
    int *host = pageable_integers(count);
    fill(device, count, 7);
    DOWNLOAD(copy, host, device, bytes); // sync: read required, other unnecessary
    pid_t child = fork();
    if (child == 0)
        _exit(variant("read") ? sum(host, count) == 7 * count : 1);
    int status = 0;
    waitpid(child, &status, 0);
    expect("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1);
}
