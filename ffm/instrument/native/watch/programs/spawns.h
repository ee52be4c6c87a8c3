/* Programs that the C library starts: what they are given is read in the child, where it is not seen. */
#ifndef FFM_SPAWNS_H
#define FFM_SPAWNS_H

#include "followed.h"

extern ffm_followed ffm_spawns[];

#endif
