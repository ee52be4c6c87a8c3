/* Pages that the translation of the trace watch looks at: those with an armed range. */
#ifndef FFM_TRACE_MARKS_H
#define FFM_TRACE_MARKS_H

#include <stdint.h>

#include "export.h"

/* Marks of trace_operand.h, by the low bits of a page's number. */
FFM_EXPORT extern uint8_t ffm_collector_trace_pages[];

/* Mark the pages of armed ranges from now on, in place of protecting them. */
void ffm_trace_marks_open(void);

#endif
