/* Alternate signal stacks. A fault on the page that a thread's stack pointer is on can only be handled on another
 * stack: the kernel ends a program whose signal frame it cannot write. So each thread has an alternate stack of ours
 * until the program gives it one; the program does not see it. */
#ifndef FFM_SIGNAL_STACKS_H
#define FFM_SIGNAL_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Give the calling thread a stack, unless it has one. Not in signal handlers, whose end restores the one before. */
void ffm_signal_stack_give(void);

/* The same in a handler: the interrupted thread has it when the handler returns. */
void ffm_signal_stack_give_in_handler(ucontext_t *interrupted);

/* Whether the interrupted thread's alternate stack is ours. */
bool ffm_signal_stack_is_ours(const ucontext_t *interrupted);

/* In place of the program's sigaltstack, while it is ours: the answer is that of a thread without one. */
int64_t ffm_signal_stack_program(const uint64_t *arguments, ucontext_t *interrupted);

/* The calling thread is about to end, perhaps on its stack: another may have it once the kernel knows no such thread.
 */
void ffm_signal_stack_release(void);

/* In a forked child, whose other threads' stacks are left over. */
void ffm_signal_stacks_after_fork(void);

#endif
