/* System calls in which threads of the process are blocked, where a signal may be noticed: some calls end with EINTR
 * whether or not its handler asks for SA_RESTART (signal(7), "Interruption of system calls and library functions by
 * signal handlers"), and some wait for signals. Told by /proc (proc(5)); nothing is known where that cannot be read. */
#ifndef FFM_BLOCKED_CALLS_H
#define FFM_BLOCKED_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <ucontext.h>

typedef struct {
    uint64_t number, arguments[6];
    uint64_t stack;  /* the pointer to it */
    uint64_t behind; /* address of the instruction after the call; 0: nothing is known */
} ffm_blocked_call;

/* The call that another thread is blocked in; `behind` is 0 where it runs. */
ffm_blocked_call ffm_blocked_call_of(pid_t thread);

/* Whether the thread holds a signal back, or waits for it to come: it would find the signal later, or at once. */
bool ffm_blocked_awaits(pid_t thread, const ffm_blocked_call *call, int signal);

/* In a signal's handler: the thread was in that call, and makes it again where the signal ended it. A time that it was
 * to wait begins anew. */
void ffm_blocked_call_again(const ffm_blocked_call *call, ucontext_t *interrupted);

#endif
