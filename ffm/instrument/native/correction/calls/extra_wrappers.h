/* What replaces the driver functions of extra_functions.def: their answers are as if nothing were corrected. */
#ifndef FFM_REMEDY_EXTRA_WRAPPERS_H
#define FFM_REMEDY_EXTRA_WRAPPERS_H

#include <stdint.h>

/* Replacement code for a function; NULL for an index out of range. */
void *ffm_extra_wrapper(uint32_t extra);

#endif
