/* The trace watch: every load and store of the program's threads, exactly, without protecting a page. The reference
 * that the page watch is compared with (docs/architecture.md#synchronizations).
 *
 * Frida's Stalker runs a translation of the program's code, made by ../trace_translator.c. It follows the threads that
 * the program starts, and each thread from its first driver call on, or from when it starts another, but not the
 * driver's own threads. Not seen are accesses in signal handlers, and accesses of PUSH, POP, CALL and RET to the stack.
 */
#ifndef FFM_TRACE_H
#define FFM_TRACE_H

/* Follow the calling thread from here on, unless it is already followed. */
void ffm_trace_follow(void);

/* In a forked child, after its agent has entered. */
void ffm_trace_after_fork(void);

#endif
