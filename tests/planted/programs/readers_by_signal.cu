// The result is read when a timer fires: in a thread that the timer starts, after its blocked signal was taken or a
// descriptor told of it, or in a handler on a stack of its own.
// variants: thread, taken, descriptor, stack
#include "planted.h"

#include <atomic>
#include <csignal>
#include <ctime>
#include <sys/signalfd.h>
#include <thread>

constexpr int count = 1024;
constexpr size_t bytes = count * sizeof(int);

static int *host;
static std::atomic<long long> found{-1};

static void notified(sigval)
{
    found = sum(host, count);
}

static void handle(int)
{
    found = sum(host, count);
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    if (!variant("stack"))
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
    if (variant("stack")) {
        stack_t stack = {};
        stack.ss_size = 1 << 16;
        stack.ss_sp = std::malloc(stack.ss_size);
        sigaltstack(&stack, nullptr);
        struct sigaction action = {};
        action.sa_handler = handle;
        action.sa_flags = SA_ONSTACK;
        sigaction(SIGUSR2, &action, nullptr);
    }
    fill(device, count, 7);
    DOWNLOAD_ASYNC(host, device, bytes);
    WAIT(wait, cudaStreamSynchronize(nullptr)); // sync: required
    timer_t timer;
    sigevent event = {};
    event.sigev_notify = variant("thread") ? SIGEV_THREAD : SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR2;
    if (variant("thread"))
        event.sigev_notify_function = notified;
    expect("timer", timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    const itimerspec soon = {{}, {0, 1000}};
    timer_settime(timer, 0, &soon, nullptr);
    if (variant("taken")) {
        siginfo_t info;
        sigwaitinfo(&set, &info);
        found = sum(host, count);
    } else if (variant("descriptor")) {
        const int file = signalfd(-1, &set, 0);
        signalfd_siginfo info;
        expect("read", read(file, &info, sizeof info), sizeof info);
        found = sum(host, count);
    } else {
        while (found == -1)
            std::this_thread::yield();
    }
    expect("sum", found, 7 * count);
}
