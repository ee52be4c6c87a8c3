/* Threads that were begun before the driver is loaded wait for nothing, each in another way; each tells what its wait
 * said. */
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include <cuda_runtime_api.h>

static constexpr int seconds = 2;

static const char *outcome(long result)
{
    return result == -1 ? std::strerror(errno) : "over";
}

static const char *sleeps()
{
    return sleep(seconds) == 0 ? "over" : "woken";
}

static const char *polls()
{
    return outcome(poll(nullptr, 0, seconds * 1000));
}

static const char *selects()
{
    timeval limit = {seconds, 0};
    return outcome(select(0, nullptr, nullptr, nullptr, &limit));
}

static const char *waits_for_events()
{
    epoll_event event;
    return outcome(epoll_wait(epoll_create1(0), &event, 1, seconds * 1000));
}

static const char *waits_for_semaphore()
{
    static sem_t semaphore;
    timespec end;
    sem_init(&semaphore, 0, 0);
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += seconds;
    return outcome(sem_timedwait(&semaphore, &end));
}

/* As a thread that looks after all signals of its program does. */
static const char *waits_for_signals()
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    const timespec limit = {seconds, 0};
    int signal = sigtimedwait(&all, nullptr, &limit);
    return signal == -1 ? std::strerror(errno) : strsignal(signal);
}

static const struct {
    const char *name;
    const char *(*wait)();
} ways[] = {
    {"sleep", sleeps},
    {"poll", polls},
    {"select", selects},
    {"epoll_wait", waits_for_events},
    {"sem_timedwait", waits_for_semaphore},
    {"sigtimedwait", waits_for_signals},
};

int main()
{
    std::vector<std::thread> threads;
    std::vector<const char *> said(sizeof ways / sizeof *ways);
    for (std::size_t way = 0; way < said.size(); ++way)
        threads.emplace_back([&said, way] { said[way] = ways[way].wait(); });
    usleep(200'000); /* all wait by now */
    int *device = nullptr, host = 1;
    if (cudaMalloc(reinterpret_cast<void **>(&device), sizeof host) != cudaSuccess ||
        cudaMemset(device, 0, sizeof host) != cudaSuccess ||
        cudaMemcpy(&host, device, sizeof host, cudaMemcpyDeviceToHost) != cudaSuccess)
        return 1;
    for (std::size_t way = 0; way < said.size(); ++way) {
        threads[way].join();
        std::printf("%s: %s\n", ways[way].name, said[way]);
    }
    return host;
}
