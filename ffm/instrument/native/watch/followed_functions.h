/* All functions that are replaced before the program runs, of whatever file. */
#ifndef FFM_FOLLOWED_FUNCTIONS_H
#define FFM_FOLLOWED_FUNCTIONS_H

#include <stdint.h>

#include "followed.h"

/* The row of a function of all tables, or NULL behind the last one. */
ffm_followed *ffm_followed_at(uint32_t place);

#endif
