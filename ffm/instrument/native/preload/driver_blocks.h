/* Heap blocks of the driver and of the dynamic linker. */
#ifndef FFM_DRIVER_BLOCKS_H
#define FFM_DRIVER_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* Note code of the driver. */
void ffm_driver_blocks_code(uint64_t start, uint64_t end);

/* A block whose address is a multiple of `alignment`, a power of two. NULL if it comes from the program's allocator: it
 * is large, or requested by other code, or there is no memory for it here. */
void *ffm_driver_block(size_t alignment, size_t bytes, const void *caller);

#endif
