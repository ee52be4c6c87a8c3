/* System calls that are made without a signal (quick_places.h): plain ones (system_calls.h) that touch no closed
 * memory. All other calls, and plain ones that need anything else done, go through dispatch.h, which alone knows what
 * to do. */
#ifndef FFM_QUICK_CALLS_H
#define FFM_QUICK_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* A handler of the program begins, and has interrupted this code: if it was making such a call, the call is over, or is
 * made in the usual way when the handler returns. */
void ffm_quick_call_interrupted(ucontext_t *interrupted);

#endif
