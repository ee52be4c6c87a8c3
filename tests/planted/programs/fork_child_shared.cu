// A child reads memory that it shares with its parent, which has downloaded into it; or the child does something else.
// variants: read, other
// like: fork_shares_memory
#include "planted.h"

#include <sys/wait.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int *host = static_cast<int *>(memory);
    host[0] = 0;
    int *device = device_integers(count);
    check(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, other unnecessary
    pid_t child = fork();
    if (child == 0)
        _exit(variant("read") ? sum(host, count) == 7 * count : 1);
    int status = 0;
    waitpid(child, &status, 0);
    expect("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1, 1);
}
