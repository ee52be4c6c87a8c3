/* Handlers of signals, whose code the trace watch does not translate: when one runs, everything armed counts as used.
 * The function that installs them is replaced, as those of clocks.h. */
#ifndef FFM_TRACE_HANDLERS_H
#define FFM_TRACE_HANDLERS_H

#include <stdint.h>

const char *ffm_trace_handlers_name(uint32_t place);
void *ffm_trace_handlers_wrapper(uint32_t place);
void ffm_trace_handlers_bind(uint32_t place, void *original);

#endif
