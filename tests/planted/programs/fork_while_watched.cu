// The program forks a child that touches nothing; afterwards the parent reads the download, or does not.
// variants: read, never
#include "planted.h"

#include <sys/wait.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary
    if (planted::complete()) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        int status = -1;
        waitpid(child, &status, 0);
        expect("child", status, 0);
    }
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
