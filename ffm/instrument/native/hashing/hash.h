/* The hash of some bytes, by XXH3-128. */
#ifndef FFM_HASH_H
#define FFM_HASH_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t low, high;
} ffm_hash;

static inline bool ffm_hash_equal(const ffm_hash *one, const ffm_hash *other)
{
    return one->low == other->low && one->high == other->high;
}

#endif
