// A child that the program forks reads what came, and says so by its exit status; or the child does something else.
// variants: read, other
#include "planted.h"

#include <sys/wait.h>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
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
