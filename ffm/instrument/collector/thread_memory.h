/* Memory of the program's threads that can never be protected: the kernel itself writes to stacks (frames of handlers)
 * and to control blocks (the area of restartable sequences, the word that tells a thread's end) at any moment, and ends
 * a process that does not let it. */
#ifndef FFM_THREAD_MEMORY_H
#define FFM_THREAD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* A thread with this control block has its stack in [stack, stack_end); with an end of 0 only the block is known. */
void ffm_thread_memory_add(uint64_t control_block, uint64_t stack, uint64_t stack_end);

/* The calling thread: what can be known in a handler. */
void ffm_thread_memory_add_self(void);

/* The calling thread's handlers run on another stack. */
void ffm_thread_memory_add_alternate(uint64_t start, uint64_t end);

/* The calling thread ends. */
void ffm_thread_memory_remove_self(void);

/* Whether [start, end) shares a page with such memory. */
bool ffm_thread_memory_touches(uint64_t start, uint64_t end);

#endif
