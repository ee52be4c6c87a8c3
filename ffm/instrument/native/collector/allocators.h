/* The C library's allocator, as the program calls it: large blocks are remembered (host_blocks.h). */
#ifndef FFM_ALLOCATORS_H
#define FFM_ALLOCATORS_H

#include <stdbool.h>
#include <stdint.h>

/* Functions to replace, by index: name (NULL after the last), replacement, original. */
const char *ffm_allocator_name(uint32_t place);
void *ffm_allocator_wrapper(uint32_t place);
void ffm_allocator_bind(uint32_t place, void *original);
bool ffm_allocator_is_bound(uint32_t place);

#endif
