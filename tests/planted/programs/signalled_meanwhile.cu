// While a thread downloads and reads, another one installs the program's first handler of a signal and sends it that
// signal again and again, or sets the group of all threads.
// variants: handler, group
#include "planted.h"

#include <atomic>
#include <csignal>
#include <pthread.h>
#include <thread>
#include <unistd.h>

constexpr int count = 16, turns = 200, before = 20;

static std::atomic<int> handled;

static void handle()
{
    struct sigaction action = {};
    action.sa_handler = [](int) { ++handled; };
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
}

void program()
{
    int *device = device_integers(count), *host = pinned_integers(count);
    std::atomic<int> turn{0};
    const pthread_t downloading = pthread_self();
    std::thread other([&] {
        while (turn < before)
            usleep(100);
        if (variant("handler"))
            handle();
        for (; turn < turns; usleep(100))
            expect("sent", variant("handler") ? pthread_kill(downloading, SIGUSR1) : setgid(getgid()), 0);
    });
    for (; turn < turns; ++turn) {
        fill(device, count, turn);
        DOWNLOAD(last, host, device, count * sizeof(int)); // sync: required
        expect("sum", sum(host, count), static_cast<long long>(count) * turn);
    }
    other.join();
    if (variant("handler"))
        expect("handled", handled > 0, 1);
}
