/* Blocks of the heap that have pages of their own: marks.c, which is preloaded, gives them. */
#ifndef FFM_REMEDY_HEAP_H
#define FFM_REMEDY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Find what is preloaded; in a program without it no block has pages of its own. Again in a forked child. */
void ffm_heap_open(void);

/* Whether all pages of [first, last) belong to such blocks. */
bool ffm_heap_owns(uint64_t first, uint64_t last);

#endif
