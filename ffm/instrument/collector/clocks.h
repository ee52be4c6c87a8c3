/* Functions that read a clock, which are replaced. */
#ifndef FFM_CLOCKS_H
#define FFM_CLOCKS_H

#include <stdint.h>

/* The name of a function, or NULL behind the last one. */
const char *ffm_clocks_name(uint32_t place);

/* Its replacement, or NULL if that is already in place; and the code that runs it without. */
void *ffm_clocks_wrapper(uint32_t place);
void ffm_clocks_bind(uint32_t place, void *original);

#endif
