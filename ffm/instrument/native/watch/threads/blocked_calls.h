/* Blocked system calls in which a signal would be noticed: some end with EINTR even if the handler asks for SA_RESTART
 * (signal(7), "Interruption of system calls and library functions by signal handlers"), and some wait for signals. Read
 * from /proc (proc(5)); unknown if that cannot be read. */
#ifndef FFM_BLOCKED_CALLS_H
#define FFM_BLOCKED_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>

typedef struct {
    uint64_t number, arguments[6];
    uint64_t stack;  /* the pointer to it */
    uint64_t behind; /* address of the instruction after the call; 0 if nothing is known */
} ffm_blocked_call;

/* The call in which another thread is blocked; `behind` is 0 if the thread is running. */
ffm_blocked_call ffm_blocked_call_of(pid_t thread);

/* Whether threads may sleep in a system call. An unknown call counts as one in which they do not. */
bool ffm_blocked_call_may_sleep(uint64_t number, const uint64_t *arguments);

/* Whether a system call only waits, often for long: when the kernel refuses it, nothing is lost, and it can be made
 * again. */
bool ffm_blocked_call_only_waits(uint64_t number);

/* Whether the thread blocks a signal, or waits for it: it would receive the signal later, or notice it at once. Also
 * true if that changed meanwhile. Sets `call` to the call in which it is blocked. */
bool ffm_blocked_awaits(pid_t thread, int signal, ffm_blocked_call *call);

/* In a signal's handler: if the signal ended the call in which the thread was, make that call again. Its timeout starts
 * again. */
void ffm_blocked_call_again(const ffm_blocked_call *call, ucontext_t *interrupted);

#endif
