/* Work that is captured into a graph instead of being done. CUDA then forbids what the collector would ask. */
#ifndef FFM_CAPTURES_H
#define FFM_CAPTURES_H

#include <stdbool.h>

#include "catalogue.h"
#include "thread.h"

/* The driver's own answer about a stream: cuStreamIsCapturing, called without its hook; NULL where it has none. */
void ffm_captures_ask(void *is_capturing);

/* Before a call that may begin a capture: other threads ask the driver nothing from here on that would spoil it. */
void ffm_captures_foresee(const ffm_function *function);

/* Note the start and end of captures; call after each call. */
void ffm_captures_note(const ffm_function *function, const ffm_operation *operation);

/* Whether any thread of the process captures. */
bool ffm_capturing(void);

/* Whether a call, about to be made, is captured. */
bool ffm_captured(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread);

#endif
