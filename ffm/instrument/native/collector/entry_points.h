/* Answers of `cuGetProcAddress`: an address that is not an export of the driver is reported before the program can call
 * it. */
#ifndef FFM_ENTRY_POINTS_H
#define FFM_ENTRY_POINTS_H

#include <stdint.h>

/* Receives an answer: the requested name, the address, the version of CUDA and the flags. */
typedef void (*ffm_entry_found)(const char *name, void *address, int32_t version, uint64_t flags);

/* `known` are `count` addresses that are not reported; they must stay valid. */
void ffm_entry_points_watch(void *const *known, uint32_t count, ffm_entry_found found);

#endif
