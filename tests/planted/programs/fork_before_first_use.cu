// The driver is loaded, and a child forked, before either uses the GPU; the child alone does, and reads or does not.
// variants: read, never
#include "planted.h"

#include <dlfcn.h>
#include <sys/wait.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static void in_child()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}

void program()
{
    expect("driver", dlopen("libcuda.so.1", RTLD_NOW) != nullptr, 1);
    pid_t child = fork();
    if (child == 0) {
        in_child();
        std::fflush(stdout);
        _exit(planted::failed() ? 1 : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    expect("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}
