/* Pages that the translation of the trace watch looks at: those with an armed range. */
#ifndef FFM_TRACE_MARKS_H
#define FFM_TRACE_MARKS_H

#include <stdint.h>

#include "export.h"

/* Marks of trace_operand.h, by the low bits of a page's number. */
FFM_EXPORT extern uint8_t ffm_collector_trace_pages[];

/* The set of armed ranges has changed; under the lock of the ranges. */
void ffm_trace_mark(void);

#endif
