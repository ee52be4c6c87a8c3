/* Heap blocks that have pages of their own, which the preloaded marks.c provides. */
#ifndef FFM_REMEDY_HEAP_H
#define FFM_REMEDY_HEAP_H

#include <stdbool.h>
#include <stdint.h>

/* Find the preloaded library. In a program without it, no block has pages of its own. Call again in a forked child. */
void ffm_heap_open(void);

/* Whether all pages of [first, last) belong to such blocks. */
bool ffm_heap_owns(uint64_t first, uint64_t last);

#endif
