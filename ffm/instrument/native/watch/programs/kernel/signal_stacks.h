/* Alternate signal stacks. A fault on the page that a thread's stack pointer is on can only be handled on another
 * stack: the kernel ends a program whose signal frame it cannot write. And the watch's handlers need more room than the
 * 8 KiB that many programs provide. So the kernel knows one of our stacks for each thread. The program does not see it:
 * its handlers run on the stack that it has provided. */
#ifndef FFM_SIGNAL_STACKS_H
#define FFM_SIGNAL_STACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "program_handlers.h"

/* Give the calling thread a stack. Not in signal handlers, whose end restores the one before. */
void ffm_signal_stack_give(void);

/* The same in a handler: the interrupted thread has it when the handler returns. */
void ffm_signal_stack_give_in_handler(ucontext_t *interrupted);

/* Whether the calling thread has one of ours. */
bool ffm_signal_stack_known(void);

/* In place of the program's sigaltstack, where the thread has one of ours: answers as the kernel does. */
int64_t ffm_signal_stack_program(const uint64_t *arguments, const ucontext_t *interrupted);

/* A handler of the program has been entered on ours: copy its frame to where it would be without us. That is the
 * alternate stack that it asks for, or below the program's code. Returns the stack pointer there, and what of ours is
 * free for the kernel meanwhile; 0 if it is to stay. */
uint64_t ffm_signal_stack_moved(const ffm_signal_entry *entry, stack_t *rest);

/* Where the last call is kept that is made on the part of our stack that a stack pointer is on; NULL if it is not on
 * ours. */
ffm_signals_call **ffm_signal_stack_calls(uint64_t stack);

/* A handler of the program is about to return by a system call, with a frame that showed the program's stack. */
void ffm_signal_stack_returns(uint64_t frame, const ucontext_t *interrupted);

/* The calling thread is about to end, perhaps on its stack: another may have it once the kernel knows no such thread.
 */
void ffm_signal_stack_release(void);

/* In a forked child, whose other threads' stacks are left over. */
void ffm_signal_stacks_after_fork(void);

#endif
