// Memory that parent and child share by fork: the parent downloads into it, the child, told by a pipe, reads. The child
// is forked before the download, or while it is in flight.
// variants: before, meanwhile
#include "planted.h"

#include <sys/wait.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int ends[2];
    expect("pipe", pipe(ends), 0);
    int *host = static_cast<int *>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::memset(host, 0, bytes);
    auto look = [&] {
        char letter = 0;
        _exit(read(ends[0], &letter, 1) == 1 && sum(host, count) == 7 * count ? 0 : 1);
    };
    pid_t child = variant("meanwhile") ? 0 : fork();
    if (child == 0 && !variant("meanwhile"))
        look();
    check(cudaHostRegister(host, bytes, cudaHostRegisterDefault));
    int *device = device_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    if (variant("meanwhile"))
        child = fork();
    if (child == 0)
        look();
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: required
    expect("told", write(ends[1], "", 1), 1);
    int status = 0;
    waitpid(child, &status, 0);
    expect("child", WEXITSTATUS(status), 0);
    planted::settle();
}
