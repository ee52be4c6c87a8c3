#include "gpu_threads.h"

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <sys/prctl.h>
#include <system_error>
#include <thread>

namespace vgpu
{

namespace
{

/* Faults must stay deliverable: the kernel kills a process whose thread faults with the signal blocked, and a program
 * or a tool may have a handler. */
void block_asynchronous_signals(sigset_t *previous)
{
    sigset_t blocked;
    sigfillset(&blocked);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, previous);
}

} // namespace

bool start_gpu_thread(const char *name, std::function<void()> work)
{
    sigset_t previous;
    block_asynchronous_signals(&previous);
    bool started = true;
    try {
        std::thread([name, work = std::move(work)] {
            /* The default timer slack of 50 microseconds would be as long as many copies. */
            prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
            pthread_setname_np(pthread_self(), name);
            work();
        }).detach();
    } catch (const std::system_error &) {
        started = false;
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    return started;
}

void do_work(Operation &operation)
{
    if (!operation.work)
        return;
    const Nanoseconds begun = now();
    operation.work();
    operation.worked = now() - begun;
    if (operation.estimate)
        operation.estimate->learn(operation.size, operation.worked);
    operation.work = nullptr;
}

Nanoseconds end_of(const Operation &operation)
{
    return operation.start + std::max(operation.duration, operation.worked);
}

} // namespace vgpu
