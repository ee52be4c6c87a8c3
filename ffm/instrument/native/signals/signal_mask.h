/* Which signals a thread blocks. SIGSEGV, SIGBUS, SIGTRAP and SIGSYS belong to the watch and are never blocked: a
 * thread only believes that they are. */
#ifndef FFM_SIGNAL_MASK_H
#define FFM_SIGNAL_MASK_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "kernel.h"

/* All of them, as a set. */
#define FFM_SIGNALS_OURS                                                                                               \
    ((1ULL << (SIGSEGV - 1)) | (1ULL << (SIGBUS - 1)) | (1ULL << (SIGTRAP - 1)) | (1ULL << (SIGSYS - 1)))

/* Set the thread's signal mask, and return the previous one. */
static inline uint64_t ffm_signals_set_mask(uint64_t mask)
{
    uint64_t before = 0;
    ffm_kernel(SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&mask, (uint64_t)&before, sizeof mask);
    return before;
}

/* Take a lock that handlers of signals take too, with all signals of the thread blocked; returns what unlocking needs.
 * Whoever holds it may neither fault nor wait. No system call is the C library's, which may be watched. */
static inline uint64_t ffm_signals_lock(bool *locked)
{
    const uint64_t before = ffm_signals_set_mask(UINT64_MAX);
    while (__atomic_test_and_set(locked, __ATOMIC_ACQUIRE))
        ffm_kernel(SYS_sched_yield, 0, 0, 0, 0);
    return before;
}

static inline void ffm_signals_unlock(bool *locked, uint64_t before)
{
    __atomic_clear(locked, __ATOMIC_RELEASE);
    ffm_signals_set_mask(before);
}

/* Let no handler of the program run on this thread until ffm_signals_release; ours do. These calls nest, and only the
 * outermost pair costs system calls, and none as long as the program is known to have no handler. */
void ffm_signals_hold(void);
void ffm_signals_release(void);

/* One reason more, or less, for holds to block signals, because handlers of the program may run. There is one at first:
 * whoever knows all handlers takes it away. */
void ffm_signals_block(void);
void ffm_signals_need_not_block(void);

/* The program is about to install its first handler, which is such a reason now: wait until no other thread relies on
 * there being none. */
void ffm_signals_await_holds(void);

/* In a forked child, where only this thread exists. */
void ffm_signals_holds_after_fork(void);

/* Never block these signals in this thread: the kernel ends a process that faults while SIGSEGV is blocked. */
void ffm_signals_unblock(void);

/* Record which signals a thread blocks when first seen: from now on it only believes that these are blocked. */
void ffm_signals_withhold(uint64_t *mask);

/* Those of ours that the thread believes to be blocked. */
uint64_t ffm_signals_withheld(void);

/* Replacement for the program's rt_sigprocmask, which answers as the kernel does. `mask` is the thread's, which takes
 * effect when the handler of the system call returns. */
int64_t ffm_signals_program_mask(int how, const uint64_t *set, uint64_t *before, uint64_t *mask);

#endif
