/* The layout of recordings and plans for C; see layout.h. */
#ifndef FFM_RECORDS_H
#define FFM_RECORDS_H

#include <stdint.h>

#include "layout.h"
#include "plan_layout.h"
#include "stack_layout.h"
#include "thread_layout.h"

_Static_assert(sizeof(ffm_header) <= FFM_HEADER_BYTES, "the header has one page");
_Static_assert(sizeof(ffm_operation) == 88, "the reader's dtype and the design's memory goal count on it");
_Static_assert(sizeof(ffm_chunk) == 32, "records in chunks stay aligned");

#endif
