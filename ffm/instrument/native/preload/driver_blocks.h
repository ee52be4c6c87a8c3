/* Heap blocks of the driver and of the dynamic linker. */
#ifndef FFM_DRIVER_BLOCKS_H
#define FFM_DRIVER_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Note code of the driver. */
void ffm_driver_blocks_code(uint64_t start, uint64_t end);

/* A block whose address is a multiple of `alignment`, a power of two. NULL if it comes from the program's allocator: it
 * is large, or requested by other code, or there is no memory for it here. */
void *ffm_driver_block(size_t alignment, size_t bytes, const void *caller);

/* A block on so many pages of its own, at most four, from the same slabs. NULL without memory. */
void *ffm_slab_pages(size_t pages);

/* At the start: whom to call before the memory of such a block changes, because it is given back. */
void ffm_slab_when_pages_end(void (*ends)(void *block, size_t bytes));

/* Whether a block comes from slabs; and give it back. */
bool ffm_slab_holds(const void *start);
void ffm_slab_free(void *start);

#endif
