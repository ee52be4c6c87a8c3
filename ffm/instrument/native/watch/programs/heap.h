/* Blocks of the C library's heap that the program frees: what was downloaded there is over, though the memory
 * stays mapped, and is used again by others. */
#ifndef FFM_HEAP_H
#define FFM_HEAP_H

#include "followed.h"

extern ffm_followed ffm_heap[];

#endif
