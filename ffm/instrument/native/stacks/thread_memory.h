/* Memory that the program's threads run on: stacks, thread-local variables and thread control blocks. The kernel writes
 * there at any moment (signal frames, the rseq area, the word that is cleared when a thread ends) and kills the program
 * if it cannot, so such a page is never protected. */
#ifndef FFM_THREAD_MEMORY_H
#define FFM_THREAD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* Note the calling thread's memory, which ffm_thread_memory_gone forgets. Takes locks of the C library, so not for
 * signal handlers. */
void ffm_thread_memory_here(void);

/* The same, unless it is noted already, and the stack that the thread runs on now: a coroutine's is a block of the
 * program's. */
void ffm_thread_memory_runs(void);

/* The same for a thread in a signal handler, where this is not possible: its whole stack, however far it may still
 * grow, and its thread-local variables as far as the kernel and the collector use them. `interrupted` is the stack
 * pointer before the handler, which may run on another stack. Safe there. */
void ffm_thread_memory_in_handler(uint64_t interrupted);

/* Call before the first of these: learns how much static thread-local storage threads have. */
void ffm_thread_memory_measure(void);

/* Note memory of a thread that is identified by its thread pointer (the `tls` of clone). */
void ffm_thread_memory_note(uint64_t thread_pointer, uint64_t start, uint64_t end);

/* Forget everything noted for a thread pointer: its memory may be used for anything. */
void ffm_thread_memory_gone(uint64_t thread_pointer);

/* Whether a page of [start, end) belongs to a thread. */
bool ffm_thread_memory_holds(uint64_t start, uint64_t end);

/* In a forked child: only the calling thread is left. */
void ffm_thread_memory_after_fork(void);

#endif
