/* SIGSEGV, SIGBUS, SIGTRAP and SIGSYS belong to the watch. The program's own handlers for them are kept here, and
 * called for signals that are not the watch's; the program sees them as if they were installed. */
#ifndef FFM_SIGNALS_H
#define FFM_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <ucontext.h>

#include "kernel.h"

typedef void (*ffm_signal_handler)(int, siginfo_t *, void *);

/* The kernel's own form of struct sigaction on x86-64. */
typedef struct {
    uint64_t handler, flags, restorer, mask;
} ffm_signal_action;

/* Take over these signals. Handlers of faults and traps run with all other signals blocked. */
bool ffm_signals_open(ffm_signal_handler fault, ffm_signal_handler trap, ffm_signal_handler system_call);

/* Call a function, on the thread that is interrupted, before each handler of the program. It may change where the
 * interrupted code goes on, and returns whether the handler's end will be told (ffm_signals_program_returns), and to
 * code whose system calls are the program's. */
typedef enum { FFM_END_UNTOLD, FFM_END_TOLD, FFM_END_TOLD_IN_OURS } ffm_handler_end;
void ffm_signals_before_handlers(ffm_handler_end (*before)(ucontext_t *interrupted));

/* A handler of the program that has been entered. */
typedef struct {
    ucontext_t *frame; /* the kernel's */
    uint64_t program;  /* the stack pointer of the program's own code, which a handler of ours may have interrupted */
    bool asks;         /* for an alternate stack */
    bool told;         /* whether its end will be */
} ffm_signal_entry;

/* Handlers go on where this function moves the kernel's frame; 0 is where they are. Then the kernel is given `rest` as
 * the alternate stack. */
typedef uint64_t (*ffm_signals_mover)(const ffm_signal_entry *entry, stack_t *rest);

/* Where the last call is kept that is made on the stack that a stack pointer is on; NULL if nothing is known of it. */
typedef struct ffm_signals_call ffm_signals_call;
typedef ffm_signals_call **(*ffm_signals_keeper)(uint64_t stack);

void ffm_signals_move_frames(ffm_signals_mover mover, ffm_signals_keeper keeper);

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

/* A system call of the program that a handler of ours makes, and where only the program's handlers interrupt it. They
 * may change the mask that they return to: that is the thread's, which takes effect when ours returns. */
struct ffm_signals_call {
    ucontext_t *interrupted;
    uint64_t at_start;
    ffm_signals_call *before;
};

void ffm_signals_call_begins(ffm_signals_call *call, ucontext_t *interrupted);
void ffm_signals_call_over(const ffm_signals_call *call);

/* A handler of the program is about to return, to a mask that it may have changed: `frame` is its stack pointer. The
 * answer is what was said before the handler; UNTOLD of a frame that the program made itself. */
ffm_handler_end ffm_signals_program_returns(uint64_t frame);

#endif
