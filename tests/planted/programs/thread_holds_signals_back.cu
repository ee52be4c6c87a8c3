// A thread that blocks all signals was started before the driver is loaded; it reads the download, or does not.
// variants: read, never
// like: signals_blocked
#include "planted.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <pthread.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

void program()
{
    static std::atomic<const int *> arrived{nullptr};
    static std::atomic<bool> over{false};
    static long long found = 7 * count;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread other([] {
        while (!over && !arrived)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        if (!over)
            found = sum(arrived, count);
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    int *device = device_integers(count);
    int *host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    // Such a thread could not bear a fault: nothing is watched.
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required, never unnecessary or required (undecidable)
    if (variant("read"))
        arrived = host;
    else
        over = true;
    other.join();
    expect("sum", found, 7 * count);
}
