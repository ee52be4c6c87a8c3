// A handler runs while a call waits under a signal mask of its own, or changes the mask of what it interrupted. The
// result is read in it, behind it, or never.
// variants: pselect, ppoll, epoll, epoll_precise, events, changed, never
#include "planted.h"

#include <cerrno>
#include <csignal>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <ucontext.h>

constexpr int count = 2048;

static int *host;
static volatile long long found;
static volatile sig_atomic_t handled;
static sigset_t others; /* all signals but the handled one */

static void handle(int, siginfo_t *, void *context)
{
    handled = getppid() > 0; /* a system call */
    if (variant("changed"))
        static_cast<ucontext_t *>(context)->uc_sigmask = others;
    else if (!variant("never"))
        found = sum(host, count);
}

/* Waits for ten seconds, or until the handler has run. */
static int wait_masked()
{
    const timespec long_time = {10, 0};
    epoll_event event = {};
    if (variant("ppoll") || variant("never"))
        return ppoll(nullptr, 0, &long_time, &others);
    if (variant("epoll"))
        return epoll_pwait(epoll_create1(0), &event, 1, 10'000, &others);
    if (variant("epoll_precise"))
        return static_cast<int>(syscall(SYS_epoll_pwait2, epoll_create1(0), &event, 1, &long_time, &others, 8));
    if (variant("events")) {
        unsigned long context = 0;
        struct {
            const sigset_t *set;
            size_t bytes;
        } masked = {&others, 8};
        char event_of_context[32];
        expect("context", syscall(SYS_io_setup, 1, &context), 0);
        return static_cast<int>(syscall(SYS_io_pgetevents, context, 1L, 1L, event_of_context, &long_time, &masked));
    }
    return pselect(0, nullptr, nullptr, nullptr, &long_time, &others);
}

void program()
{
    int *device = device_integers(count);
    host = pinned_integers(count);
    struct sigaction action = {};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGUSR1, &action, nullptr);
    sigfillset(&others);
    sigdelset(&others, SIGUSR1);
    fill(device, count, 7);
    // sync: pselect, ppoll, epoll, epoll_precise, events, changed required, never unnecessary or required (undecidable)
    DOWNLOAD(copy, host, device, count * sizeof(int));
    if (variant("changed")) {
        sigset_t now;
        raise(SIGUSR1);
        sigprocmask(SIG_SETMASK, nullptr, &now);
        expect("masked", sigismember(&now, SIGTERM) == 1 && sigismember(&now, SIGSYS) == 1, 1);
        found = sum(host, count);
    } else {
        sigset_t blocked;
        sigemptyset(&blocked);
        sigaddset(&blocked, SIGUSR1);
        sigprocmask(SIG_BLOCK, &blocked, nullptr);
        raise(SIGUSR1);
        expect("interrupted", wait_masked() == -1 && errno == EINTR, 1);
    }
    expect("handled", handled, 1);
    expect("sum", found, variant("never") ? 0 : 7 * count);
    settle();
}
