/* Works while it blocks all signals, and then takes one that it has sent to itself: takes_signals HOW, of wait, info,
 * timed, descriptor, or own (SIGURG, which samples use, too). Exits with 1 if it gets another one. */
#include <csignal>
#include <cstring>
#include <ctime>

#include <cuda_runtime_api.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Long enough for many ticks of the kernel. */
static void work()
{
    timespec used = {};
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    while (used.tv_sec == 0 && used.tv_nsec < 200000000);
}

static int taken(const char *how, const sigset_t &signals)
{
    int number = 0;
    const timespec limit = {20, 0};
    signalfd_siginfo info = {};
    if (strcmp(how, "wait") == 0)
        sigwait(&signals, &number);
    else if (strcmp(how, "info") == 0)
        number = sigwaitinfo(&signals, nullptr);
    else if (strcmp(how, "descriptor") != 0)
        number = sigtimedwait(&signals, nullptr, &limit);
    else if (read(signalfd(-1, &signals, 0), &info, sizeof info) == sizeof info)
        number = static_cast<int>(info.ssi_signo);
    return number;
}

int main(int, char **arguments)
{
    const int sent = strcmp(arguments[1], "own") == 0 ? SIGURG : SIGUSR1;
    int *device = nullptr;
    cudaMalloc(reinterpret_cast<void **>(&device), 4096);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, nullptr);
    work();
    cudaMemset(device, 0, 4096);
    kill(getpid(), sent);
    return taken(arguments[1], all) == sent ? 0 : 1;
}
