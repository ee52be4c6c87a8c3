/* What `cuGetProcAddress` answers: an address that no export of the driver has is made known, before the program can
 * call it. */
#ifndef FFM_ENTRY_POINTS_H
#define FFM_ENTRY_POINTS_H

#include <stdint.h>

/* Told of an answer: the name asked for, the address, the version of CUDA and the flags. */
typedef void (*ffm_entry_found)(const char *name, void *address, int32_t version, uint64_t flags);

/* `known` are `count` addresses that are not told; they stay where they are. */
void ffm_entry_points_watch(void *const *known, uint32_t count, ffm_entry_found found);

#endif
