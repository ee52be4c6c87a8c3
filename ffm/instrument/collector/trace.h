/* The trace watch: every load and store of the program's threads, exactly, without protecting a page. The reference
 * that the page watch is compared with (docs/architecture.md#synchronizations).
 *
 * Frida's Stalker runs a translation of the program's code, made by ../trace_translator.c. It follows the threads that
 * the program starts, and each thread from its first driver call on, or from when it starts another, but not the
 * driver's own threads. Not seen are accesses in signal handlers, and accesses of PUSH, POP, CALL and RET to the stack.
 */
#ifndef FFM_TRACE_H
#define FFM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this watch is on, because the agent has provided its part. */
bool ffm_trace_on(void);

/* Whether it sees all threads: there is room for some only. What others touch is not known. */
bool ffm_trace_complete(void);

/* Follow the calling thread from here on, unless it is already followed. */
void ffm_trace_follow(void);

/* In a forked child, after its agent has entered. */
void ffm_trace_after_fork(void);

/* The set of armed ranges has changed; under the lock of the ranges. */
void ffm_trace_mark(void);

/* Something that is not followed may use the program's memory from now on. */
void ffm_trace_lose(void);

#endif
