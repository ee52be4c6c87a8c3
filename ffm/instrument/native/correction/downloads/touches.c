#include "touches.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "counters.h"
#include "delivery.h"
#include "guards.h"
#include "kernel.h"
#include "late.h"
#include "signal_guards.h"

/* The last fault of this thread on a page without pending downloads, and the list's version then. */
static __thread struct {
    uint64_t address;
    uint32_t version;
} unclaimed __attribute__((tls_model("initial-exec")));

/* Another thread may have delivered the page's content since the fault, so the access is retried once. If it faults
 * again although no page was closed since, the fault was never ours. */
static bool try_again(uint64_t address)
{
    uint32_t version = ffm_late_version();
    if (unclaimed.address == address && unclaimed.version == version)
        return false;
    unclaimed.address = address;
    unclaimed.version = version;
    return true;
}

/* Restore the signal's default effect: a fault happens again, and a sent signal is sent again. */
static void end_by(int number, bool sent)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    ffm_unguarded_sigaction(number, &usual, NULL);
    if (sent)
        ffm_kernel(SYS_tgkill, (uint64_t)getpid(), (uint64_t)gettid(), (uint64_t)number, 0);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    uint64_t address = (uint64_t)info->si_addr;
    bool sent = info->si_code <= 0; /* by a process, not by the CPU */
    /* Even if nothing seems to be pending: another thread may be closing the page right now. */
    if (!sent &&
        (ffm_late_deliver(ffm_page_of(address), ffm_page_after(address + 1), &ffm_counters->deliveries_touched) ||
         try_again(address)))
        return;
    end_by(number, sent);
}

static void at_exit(void)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, true);
}

static bool opened;

static void open_once(void)
{
    struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK}, present;
    sigfillset(&fault.sa_mask);
    /* A program that handles faults itself is notified of them (signal_guards.c), and so is one that ignores the
     * signal. */
    uint64_t blocked = 0; /* as the parent of the process may have left them */
    ffm_kernel(SYS_rt_sigprocmask, SIG_BLOCK, 0, (uint64_t)&blocked, sizeof blocked);
    bool usual = ffm_guards_complete() && !(blocked >> (SIGSEGV - 1) & 1) &&
                 ffm_unguarded_sigaction(SIGSEGV, NULL, &present) == 0 && !(present.sa_flags & SA_SIGINFO) &&
                 present.sa_handler == SIG_DFL;
    ffm_guards_hide(on_fault);
    opened = usual && ffm_late_open() && ffm_unguarded_sigaction(SIGSEGV, &fault, NULL) == 0 && atexit(at_exit) == 0;
    if (!opened)
        ffm_late_off();
}

bool ffm_touches_open(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_once);
    return opened;
}
