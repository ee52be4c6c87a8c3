/* XXH3-128 of what a copy carries. */
#ifndef FFM_HASHES_H
#define FFM_HASHES_H

#include "boxes.h"
#include "hash.h"

/* Hash the bytes of a box, row after row as if there were no gaps. More than FFM_PART_BYTES are hashed in parts:
 * `part`, unless NULL, is called for each with its index and hash, and the result is the hash of their hashes.
 */
ffm_hash ffm_hash_box(const ffm_box *box, void (*part)(void *context, uint64_t place, const ffm_hash *hash),
                      void *context);

/* The same; `readable` returns each piece of the box, of at most FFM_PART_BYTES, in a form that stays readable until
 * its next call. */
ffm_hash ffm_hash_box_through(const ffm_box *box, const void *(*readable)(uint64_t start, uint64_t bytes),
                              void (*part)(void *context, uint64_t place, const ffm_hash *hash), void *context);

/* Equal for equal widths, heights and pitches. */
uint32_t ffm_hash_shape(const ffm_box *box);

#endif
