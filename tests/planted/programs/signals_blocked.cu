// The reading thread blocks all signals, as threads of servers do; a fault of it must still be served.
// variants: read, never
#include "planted.h"

#include <csignal>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary
    if (variant("read"))
        expect("sum", sum(host, count), 7 * count);
}
