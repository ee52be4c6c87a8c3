#include "signals.h"

#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel.h"

enum { OURS = 2, KERNEL_SET_BYTES = 8 };

typedef int (*sigaction_function)(int, const struct sigaction *, struct sigaction *);
typedef int (*sigmask_function)(int, const sigset_t *, sigset_t *);

static const int numbers[OURS] = {SIGSEGV, SIGTRAP};

static struct {
    bool open;
    struct sigaction program[OURS]; /* what the program asked for */
} handlers;

static int place_of(int number)
{
    for (int i = 0; i < OURS; i++)
        if (numbers[i] == number)
            return i;
    return -1;
}

static void without_ours(sigset_t *set)
{
    for (int i = 0; i < OURS; i++)
        sigdelset(set, numbers[i]);
}

void ffm_signals_mask(int how, const sigset_t *set, sigset_t *before)
{
    ffm_kernel(SYS_rt_sigprocmask, (uint64_t)how, (uint64_t)set, (uint64_t)before, KERNEL_SET_BYTES);
}

void ffm_signals_unblock(void)
{
    sigset_t ours;
    sigemptyset(&ours);
    for (int i = 0; i < OURS; i++)
        sigaddset(&ours, numbers[i]);
    ffm_signals_mask(SIG_UNBLOCK, &ours, NULL);
}

bool ffm_signals_open(ffm_signal_handler fault, ffm_signal_handler trap)
{
    const ffm_signal_handler ours[OURS] = {fault, trap};
    if (handlers.open) /* in a forked child, which has its parent's */
        return true;
    for (int i = 0; i < OURS; i++) {
        struct sigaction action = {.sa_sigaction = ours[i], .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
        sigfillset(&action.sa_mask);
        without_ours(&action.sa_mask);
        if (sigaction(numbers[i], &action, &handlers.program[i]) != 0)
            return false;
    }
    ffm_signals_unblock();
    __atomic_store_n(&handlers.open, true, __ATOMIC_RELEASE);
    return true;
}

void ffm_signals_pass(int number, siginfo_t *info, void *context)
{
    struct sigaction *wanted = &handlers.program[place_of(number)];
    struct sigaction action = *wanted;
    if (!(action.sa_flags & SA_SIGINFO) && action.sa_handler == SIG_IGN && info->si_code <= 0)
        return; /* sent by a process, not by the CPU */
    if (!(action.sa_flags & SA_SIGINFO) && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
        /* Let it happen again, with the effect that it has without us. A signal that was sent does not repeat. */
        struct sigaction usual = {.sa_handler = SIG_DFL};
        handlers.open = false;
        sigaction(number, &usual, NULL);
        if (info->si_code <= 0)
            syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
        return;
    }
    if (action.sa_flags & (int)SA_RESETHAND)
        *wanted = (struct sigaction){.sa_handler = SIG_DFL};
    sigset_t mask = action.sa_mask;
    without_ours(&mask);
    const ucontext_t *interrupted = context;
    sigset_t during;
    sigorset(&during, &mask, &interrupted->uc_sigmask);
    ffm_signals_mask(SIG_SETMASK, &during, NULL);
    if (action.sa_flags & SA_SIGINFO)
        action.sa_sigaction(number, info, context);
    else
        action.sa_handler(number);
    /* The kernel puts the interrupted thread's mask back. */
}

int ffm_signals_sigaction(int number, const struct sigaction *action, struct sigaction *before, void *original)
{
    sigaction_function real = (sigaction_function)(uintptr_t)original;
    int place = place_of(number);
    if (!__atomic_load_n(&handlers.open, __ATOMIC_ACQUIRE))
        return real(number, action, before);
    if (place >= 0) {
        struct sigaction wanted = action == NULL ? (struct sigaction){0} : *action;
        if (before != NULL)
            *before = handlers.program[place];
        if (action != NULL)
            handlers.program[place] = wanted;
        return 0;
    }
    if (action == NULL)
        return real(number, action, before);
    struct sigaction lenient = *action;
    without_ours(&lenient.sa_mask);
    return real(number, &lenient, before);
}

int ffm_signals_sigmask(int how, const sigset_t *set, sigset_t *before, void *original)
{
    sigmask_function real = (sigmask_function)(uintptr_t)original;
    if (set == NULL || how == SIG_UNBLOCK)
        return real(how, set, before);
    sigset_t lenient = *set;
    without_ours(&lenient);
    return real(how, &lenient, before);
}
