/* The process's mappings. */
#ifndef FFM_REMEDY_MAPS_H
#define FFM_REMEDY_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether all pages of [start, end) are readable, writable, private to this process, and not a thread's stack, so that
 * they can be closed and still be written. Excludes the heap, which can shrink unseen (brk). */
bool ffm_maps_private(uint64_t start, uint64_t end);

/* Whether the calling thread runs on its original stack, and [start, end) is not part of it. Pushes onto closed pages
 * cannot be handled, and the end of any other stack, as of a coroutine, is unknown. */
bool ffm_maps_beside_stack(uint64_t start, uint64_t end);

/* Mappings changed. */
void ffm_maps_changed(void);

/* A mapping for a thread's stack was created; a mapping was removed. */
void ffm_maps_stack(uint64_t start, uint64_t end);
void ffm_maps_unmapped(uint64_t start, uint64_t end);

#endif
