/* The functions that replace the driver functions. */
#ifndef FFM_WRAPPERS_H
#define FFM_WRAPPERS_H

#include <stdint.h>

/* Code for a function of the catalogue; NULL for an index out of range. */
void *ffm_wrapper(uint32_t index);

#endif
