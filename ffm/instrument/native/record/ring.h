/* Which places of a recording may be written again, if only its last nanoseconds are kept: those of chunks that were
 * full before. So a program that never ends takes only as much of the disk as it records in that time. Under the lock
 * of the sink. */
#ifndef FFM_RING_H
#define FFM_RING_H

#include <stdbool.h>
#include <stdint.h>

/* A chunk in the file. */
typedef struct {
    uint64_t offset, capacity;
    uint64_t ended; /* when it got its last record */
} ffm_ring_place;

/* Remember a chunk that gets no more records. In order of time. If there is no room for more, its place stays. */
void ffm_ring_add(const ffm_ring_place *place);

/* Take the oldest place of at least so many bytes whose chunk had ended `before`. False if there is none. */
bool ffm_ring_take(uint64_t bytes, uint64_t before, ffm_ring_place *place);

/* In a forked child, which has a recording of its own. */
void ffm_ring_clear(void);

#endif
