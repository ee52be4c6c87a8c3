// While one thread is forking a child, another reads the download.
// variants: read
#include "planted.h"

#include <atomic>
#include <pthread.h>
#include <sys/wait.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int *host;
static std::atomic<int> stage{0};
static long long found;

/* The last before the fork itself: what is registered first is called last. */
static void before_fork()
{
    if (stage.load() != 0)
        return;
    stage = 1;
    while (stage.load() != 2)
        std::this_thread::yield();
}

void program()
{
    pthread_atfork(before_fork, nullptr, nullptr);
    std::thread other([] {
        while (stage.load() != 1)
            std::this_thread::yield();
        found = sum(host, count);
        stage = 2;
    });
    int *device = device_integers(count);
    host = pinned_integers(count);
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(last, cudaStreamSynchronize(nullptr)); // sync: read required
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    waitpid(child, nullptr, 0);
    other.join();
    expect("sum", found, 7 * count);
}
