/* Code that a program writes, or that is mapped where other code was: its translation must not be executed any more.
 *
 * Code of files that nothing can write changes only by system calls, which are seen: they count replacements, and each
 * translated block first looks whether there was one since its thread's translation began. All other code may change
 * at any time: its blocks compare the code with what they were made from. Either way, a block that is out of date
 * leaves the translation, and a new one begins at its address. */
#ifndef FFM_TRACE_CODE_H
#define FFM_TRACE_CODE_H

#include <stdint.h>

/* `again` gives up the calling thread's translation and begins another one where it returns to. It does nothing in a
 * thread that is not followed. */
void ffm_trace_code_open(void (*again)(void));

/* A translation of the calling thread's code begins. */
void ffm_trace_code_begins(void);

/* A followed thread is about to make this system call. */
void ffm_trace_code_before(uint64_t number, const uint64_t *arguments);

void ffm_trace_code_after_fork(void);

#endif
