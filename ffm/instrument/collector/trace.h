/* The trace watch: every load and store of the program's threads, exactly, without protecting a page. The reference
 * that the page watch is compared with (docs/architecture.md#synchronizations).
 *
 * Frida's Stalker runs a translation of the program's code, made by ../trace_translator.c. Followed are the threads
 * that the program starts, and each thread from its first call of the driver on, or from when it starts another; not
 * the driver's own threads. Not seen: accesses in signal handlers, accesses of PUSH, POP, CALL and RET to the stack,
 * and lanes of gather and scatter instructions but for the first. */
#ifndef FFM_TRACE_H
#define FFM_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this watch is on: the agent has handed its part over. */
bool ffm_trace_on(void);

/* Follow the calling thread from here on, if it is not yet. */
void ffm_trace_follow(void);

/* In a forked child, when its agent has come in. */
void ffm_trace_after_fork(void);

/* What is armed has changed; under the lock of the ranges. */
void ffm_trace_mark(void);

#endif
