/* SIGSEGV, SIGBUS, SIGTRAP and SIGSYS belong to the watch. The program's own handlers for them are kept here, and
 * called for signals that are not the watch's; the program sees them as if they were installed. */
#ifndef FFM_SIGNALS_H
#define FFM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "kernel.h"

typedef void (*ffm_signal_handler)(int, siginfo_t *, void *);

/* The kernel's own form of struct sigaction on x86-64. */
typedef struct {
    uint64_t handler, flags, restorer, mask;
} ffm_signal_action;

/* Take over these signals. Handlers of faults and traps run with all other signals blocked. */
bool ffm_signals_open(ffm_signal_handler fault, ffm_signal_handler trap, ffm_signal_handler system_call);

/* Call a function, on the thread that is interrupted, before each handler of the program. It returns whether the
 * handler's end will be told (ffm_signals_program_returns). */
void ffm_signals_before_handlers(bool (*before)(void));

/* Pass a signal that was not ours to the program, as it requested. */
void ffm_signals_pass(int number, siginfo_t *info, void *context);

/* Record which signals a thread blocks when first seen: from now on it only believes that these are blocked. */
void ffm_signals_withhold(uint64_t *mask);

/* Never block these signals in this thread: the kernel ends a process that faults while SIGSEGV is blocked. */
void ffm_signals_unblock(void);

/* The code that ends a handler. */
extern const char ffm_signals_return[] __attribute__((visibility("hidden")));

/* A child of vfork runs in the memory of the thread that started it, with its thread-local variables, while that thread
 * waits; so does one of clone with CLONE_VM and CLONE_VFORK. What it does to signals is its own, until its parent
 * continues. It calls this first, since it may start without handlers (CLONE_CLEAR_SIGHAND). False without memory. */
bool ffm_signals_child_begins(void);
void ffm_signals_child_over(void);

/* Whether such a child is running. */
bool ffm_signals_in_child(void);

/* In a forked child: it may be such a child that forked, and has memory of its own now. */
void ffm_signals_after_fork(void);

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
 * outermost pair costs system calls. */
void ffm_signals_hold(void);
void ffm_signals_release(void);

/* Replacements for the program's rt_sigaction and rt_sigprocmask, which answer as the kernel does. `mask` is the
 * thread's, which takes effect when the handler of the system call returns. */
int64_t ffm_signals_program_action(int number, const ffm_signal_action *wanted, ffm_signal_action *before);
int64_t ffm_signals_program_mask(int how, const uint64_t *set, uint64_t *before, uint64_t *mask);

/* A system call of the program that a handler of ours makes. The program's handlers that interrupt it may change the
 * mask that they return to: that is the thread's, which takes effect when ours returns. */
typedef struct ffm_signals_call {
    uint64_t *mask, at_start;
    struct ffm_signals_call *before;
} ffm_signals_call;

void ffm_signals_call_begins(ffm_signals_call *call, uint64_t *mask);
void ffm_signals_call_over(const ffm_signals_call *call);

/* A handler of the program is about to return, to a mask that it may have changed: `frame` is its stack pointer. */
void ffm_signals_program_returns(uint64_t frame);

#endif
