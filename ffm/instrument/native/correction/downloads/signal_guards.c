#include "signal_guards.h"

#include <stdbool.h>
#include <stddef.h>

#include "counters.h"
#include "delivery.h"

enum { SIGNALS = 65 };

/* The program has its own handler for faults: nothing may be pending any more. */
static void hand_over(int number)
{
    if (number == SIGSEGV)
        ffm_downloads_deliver_all(&ffm_counters->deliveries_called, true);
}

/* A fault while its signal is blocked would end the program. So it never is; the program is told what it asked for. */
static const sigset_t *with_faults(word given, sigset_t *room)
{
    const sigset_t *set = (const sigset_t *)given;
    if (set == NULL || sigismember(set, SIGSEGV) != 1)
        return set;
    *room = *set;
    sigdelset(room, SIGSEGV);
    return room;
}

static void (*hidden)(int, siginfo_t *, void *);

void ffm_guards_hide(void (*handler)(int, siginfo_t *, void *))
{
    __atomic_store_n(&hidden, handler, __ATOMIC_RELEASE);
}

static bool is_hidden(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) && action->sa_sigaction == __atomic_load_n(&hidden, __ATOMIC_ACQUIRE);
}

/* Whether the program's handlers of signals were to block faults. */
static bool handlers_block[SIGNALS];

word ffm_guard_sigaction(PARAMETERS)
{
    const uint32_t number = (uint32_t)a;
    const bool known = number < SIGNALS;
    const bool blocked = known && __atomic_load_n(&handlers_block[number], __ATOMIC_RELAXED);
    struct sigaction without, before;
    if (b != 0) {
        hand_over((int)a);
        without = *(const struct sigaction *)b;
        sigdelset(&without.sa_mask, SIGSEGV);
    }
    const word result = ffm_guard_original(GUARD_sigaction)(a, b != 0 ? (word)&without : 0, (word)&before, d, e, f);
    if ((int)result != 0)
        return result;
    if (b != 0 && known)
        __atomic_store_n(&handlers_block[number], sigismember(&((const struct sigaction *)b)->sa_mask, SIGSEGV) == 1,
                         __ATOMIC_RELAXED);
    if (is_hidden(&before))
        before = (struct sigaction){.sa_handler = SIG_DFL};
    if (blocked)
        sigaddset(&before.sa_mask, SIGSEGV);
    if (c != 0)
        *(struct sigaction *)c = before;
    return result;
}

word ffm_guard_signal(PARAMETERS)
{
    hand_over((int)a);
    struct sigaction before;
    const bool ours = ffm_unguarded_sigaction((int)a, NULL, &before) == 0 && is_hidden(&before);
    const word result = ffm_guard_original(GUARD_signal)(ARGUMENTS);
    return ours && (void (*)(int))result != SIG_ERR ? (word)SIG_DFL : result;
}

/* Whether this thread believes that faults are blocked. */
static __thread bool believes_blocked __attribute__((tls_model("initial-exec")));

/* sigprocmask calls this function. */
word ffm_guard_pthread_sigmask(PARAMETERS)
{
    const bool before = believes_blocked, named = b != 0 && sigismember((const sigset_t *)b, SIGSEGV) == 1;
    const bool blocks = named && ((int)a == SIG_BLOCK || (int)a == SIG_SETMASK);
    const bool unblocks = b != 0 && ((int)a == SIG_UNBLOCK ? named : (int)a == SIG_SETMASK && !named);
    sigset_t room;
    const sigset_t *given = blocks ? with_faults(b, &room) : (const sigset_t *)b;
    const word result = ffm_guard_original(GUARD_pthread_sigmask)(a, (word)given, c, d, e, f);
    if ((int)result != 0)
        return result;
    believes_blocked = blocks || (before && !unblocks);
    if (before && c != 0)
        sigaddset((sigset_t *)c, SIGSEGV);
    return result;
}

/* Calls during which the thread has another mask, and the thread's mask from its start on. */
word ffm_guard_sigsuspend(PARAMETERS)
{
    sigset_t room;
    return ffm_guard_original(GUARD_sigsuspend)((word)with_faults(a, &room), b, c, d, e, f);
}

word ffm_guard_ppoll(PARAMETERS)
{
    sigset_t room;
    const word mask = (word)with_faults(d, &room);
    return ffm_guard_again_where_closed(GUARD_ppoll, a, b, c, mask, e, f);
}

word ffm_guard_pselect(PARAMETERS)
{
    sigset_t room;
    return ffm_guard_again_where_closed(GUARD_pselect, a, b, c, d, e, (word)with_faults(f, &room));
}

word ffm_guard_epoll_pwait(PARAMETERS)
{
    sigset_t room;
    return ffm_guard_again_where_closed(GUARD_epoll_pwait, a, b, c, d, (word)with_faults(e, &room), f);
}

word ffm_guard_epoll_pwait2(PARAMETERS)
{
    sigset_t room;
    return ffm_guard_again_where_closed(GUARD_epoll_pwait2, a, b, c, d, (word)with_faults(e, &room), f);
}

word ffm_guard_pthread_attr_setsigmask_np(PARAMETERS)
{
    sigset_t room;
    return ffm_guard_original(GUARD_pthread_attr_setsigmask_np)(a, (word)with_faults(b, &room), c, d, e, f);
}

int ffm_unguarded_sigaction(int number, const struct sigaction *action, struct sigaction *previous)
{
    return (int)ffm_guard_original(GUARD_sigaction)((word)number, (word)action, (word)previous, 0, 0, 0);
}
