/* XXH3-128 of what a copy carries. */
#ifndef FFM_HASHES_H
#define FFM_HASHES_H

#include "boxes.h"

typedef struct {
    uint64_t low, high;
} ffm_hash;

/* Hash the bytes of a box, row after row as if they had no gaps. More than FFM_PART_BYTES are hashed by
 * parts: `part`, unless it is NULL, is called for each with its place and hash, and the result is the hash of theirs.
 */
ffm_hash ffm_hash_box(const ffm_box *box, void (*part)(void *context, uint64_t place, const ffm_hash *hash),
                      void *context);

/* The two that it chooses from. */
ffm_hash ffm_hash_box_sse2(const ffm_box *box, void (*part)(void *context, uint64_t place, const ffm_hash *hash),
                           void *context);
ffm_hash ffm_hash_box_avx2(const ffm_box *box, void (*part)(void *context, uint64_t place, const ffm_hash *hash),
                           void *context);

/* The same for equal widths, heights and pitches. */
uint32_t ffm_hash_shape(const ffm_box *box);

static inline bool ffm_hash_equal(const ffm_hash *one, const ffm_hash *other)
{
    return one->low == other->low && one->high == other->high;
}

#endif
