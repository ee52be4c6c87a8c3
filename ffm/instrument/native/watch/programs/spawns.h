/* Programs that the C library starts: what they are given is read in the child, which the trace does not follow. */
#ifndef FFM_SPAWNS_H
#define FFM_SPAWNS_H

#include "followed.h"

extern ffm_followed ffm_spawns[];

#endif
