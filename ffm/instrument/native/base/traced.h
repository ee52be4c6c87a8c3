/* Whether the trace watch is on: Frida then translates the program's code, and no page is protected. */
#ifndef FFM_TRACED_H
#define FFM_TRACED_H

#include <stdbool.h>

/* Whether this watch is on, because the agent has provided its part. */
bool ffm_trace_on(void);
void ffm_trace_turn_on(void);

/* Whether it sees all threads at this moment. There is room for a limited number of them, and signal handlers are not
 * seen. What unseen code touches is not known. */
bool ffm_trace_complete(void);

/* Something that is not followed may use the program's memory from now on. */
void ffm_trace_lose(void);

/* Around a signal handler. A thread that leaves it by a jump goes on in its own code, unseen: for it, the handler is
 * never over. */
void ffm_trace_handler_begins(void);
void ffm_trace_handler_over(void);

#endif
