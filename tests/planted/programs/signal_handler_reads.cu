// A handler of a signal reads the result, of a signal that the program sends itself or of a timer; or it reads nothing.
// variants: sent, timer, nothing
#include "planted.h"

#include <signal.h>
#include <sys/time.h>

constexpr int count = 16384;
constexpr size_t bytes = count * sizeof(int);

static int *host;
static volatile long long total;
static volatile sig_atomic_t handled;

static void handle(int)
{
    long long found = 0;
    for (int index = 0; index < count && !variant("nothing"); ++index)
        found += host[index];
    total = found;
    handled = 1;
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    signal(SIGALRM, handle);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // sync: sent, timer required, nothing required (undecidable) or unnecessary
    WAIT(last, cudaStreamSynchronize(nullptr));
    if (variant("timer")) {
        itimerval once = {{0, 0}, {0, 1000}};
        setitimer(ITIMER_REAL, &once, nullptr);
        while (!handled)
            continue;
    } else {
        raise(SIGALRM);
    }
    expect("total", total, variant("nothing") ? 0 : 7LL * count);
}
