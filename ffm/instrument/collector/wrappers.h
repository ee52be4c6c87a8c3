/* The functions that take the driver functions' places. */
#ifndef FFM_WRAPPERS_H
#define FFM_WRAPPERS_H

#include <stdint.h>

/* Code for a function of the catalogue; NULL for an index outside of it. */
void *ffm_wrapper(uint32_t index);

#endif
