/* Signal handlers, whose code the trace watch does not translate: when one runs, everything armed counts as used, and
 * so does what would be armed until it returns. The function that installs them is replaced. */
#ifndef FFM_TRACE_HANDLERS_H
#define FFM_TRACE_HANDLERS_H

#include "followed.h"

extern ffm_followed ffm_trace_handlers[];

#endif
