/* Work that is captured into a graph instead of being done. During a capture CUDA forbids the collector's queries. */
#ifndef FFM_CAPTURES_H
#define FFM_CAPTURES_H

#include <stdbool.h>

#include "catalogue.h"
#include "thread.h"

/* Provide the driver's own query about a stream: cuStreamIsCapturing, called without its hook; NULL if it has none. */
void ffm_captures_ask(void *is_capturing);

/* Call before a call that may begin a capture: from here on, other threads make no query that would invalidate it. */
void ffm_captures_foresee(const ffm_function *function);

/* Note the start and end of captures; call after each call. */
void ffm_captures_note(const ffm_function *function, const ffm_operation *operation);

/* Whether any thread of the process is capturing. */
bool ffm_capturing(void);

/* Whether a call that is about to be made will be captured. */
bool ffm_captured(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread);

#endif
