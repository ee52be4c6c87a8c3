/* Whether other data of the program lie on the pages of a range.
 *
 * Data beside a range can be stepped over when the program's code touches them, but not when the kernel does: a futex
 * word on a protected page makes the C library abort the program. */
#ifndef FFM_NEIGHBOURS_H
#define FFM_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a page that [start, end) covers only in part belongs to the heap, an arena of malloc, or static data. */
bool ffm_neighbours_at(uint64_t start, uint64_t end);

#endif
