/* All functions that are replaced before the program runs, from all files. */
#ifndef FFM_FOLLOWED_FUNCTIONS_H
#define FFM_FOLLOWED_FUNCTIONS_H

#include <stdint.h>

#include "followed.h"

/* The row at an index of all tables together; NULL behind the last one. */
ffm_followed *ffm_followed_at(uint32_t place);

#endif
