// A thread or a process that the C library did not start reads the result: by clone(2) with shared memory, with copied
// memory, or by vfork; or it runs but reads something else.
// variants: thread, process, vfork, other
#include "planted.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

constexpr int count = 16384;
constexpr size_t bytes = count * sizeof(int);

static int *host, *elsewhere;
static volatile long long total;
static volatile int done;

static int run(void *read)
{
    const int *from = static_cast<int *>(read);
    long long found = 0;
    for (int index = 0; index < count; ++index)
        found += from[index];
    total = found;
    done = 1;
    return found == 7LL * count ? 0 : 1;
}

static void start(int flags)
{
    static char stack[1 << 16] __attribute__((aligned(64)));
    int *read = variant("other") ? elsewhere : host;
    const int child = clone(run, stack + sizeof stack, flags | SIGCHLD, read);
    int status = 0;
    waitpid(child, &status, 0);
    expect("status", status, 0);
}

static void start_vfork()
{
    const pid_t child = vfork();
    if (child == 0)
        _exit(run(host));
    int status = 0;
    waitpid(child, &status, 0);
    expect("status", status, 0);
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    elsewhere = pageable_integers(count, 7);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: thread, process, vfork required, other required (undecidable) or unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("vfork"))
        start_vfork();
    else if (variant("process"))
        start(0);
    else
        start(CLONE_VM | CLONE_FS | CLONE_FILES);
}
