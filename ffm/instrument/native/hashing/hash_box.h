/* The code of ffm_hash_box_through, once for each width of vectors: the including file names the function,
 * FFM_HASH_BOX, and selects the instructions that may be used. The hashes are the same. */
#include <stdbool.h>

#include "boxes.h"
#include "hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* As ffm_hash_box_through (hashes.h), with the instructions that the names say. If `readable` is NULL, everything can
 * be read as it is. */
ffm_hash ffm_hash_box_sse2(const ffm_box *box, const void *(*readable)(uint64_t start, uint64_t bytes),
                           void (*part)(void *context, uint64_t place, const ffm_hash *hash), void *context);
ffm_hash ffm_hash_box_avx2(const ffm_box *box, const void *(*readable)(uint64_t start, uint64_t bytes),
                           void (*part)(void *context, uint64_t place, const ffm_hash *hash), void *context);

/* Bytes are divided into parts in sequence, regardless of their rows. */
typedef struct {
    XXH3_state_t part, whole;
    uint64_t filled, parts; /* bytes of the current part; number of parts before it */
    ffm_hash last;
    const void *(*readable)(uint64_t start, uint64_t bytes);
    void (*each)(void *context, uint64_t place, const ffm_hash *hash);
    void *context;
} parts_state;

static ffm_hash from(XXH128_hash_t hash)
{
    return (ffm_hash){hash.low64, hash.high64};
}

static void end_part(parts_state *state, ffm_hash hash, bool only)
{
    state->last = hash;
    if (!only) {
        XXH3_128bits_update(&state->whole, &hash, sizeof hash);
        if (state->each != NULL)
            state->each(state->context, state->parts, &hash);
    }
    state->parts++;
    state->filled = 0;
}

static void take(parts_state *state, uint64_t start, uint64_t count, bool only)
{
    while (count > 0) {
        uint64_t room = FFM_PART_BYTES - state->filled, length = count < room ? count : room;
        const void *bytes = state->readable == NULL ? (const void *)start : state->readable(start, length);
        if (length == FFM_PART_BYTES) { /* a whole part in one piece */
            end_part(state, from(XXH3_128bits(bytes, length)), only);
        } else {
            if (state->filled == 0)
                XXH3_128bits_reset(&state->part);
            XXH3_128bits_update(&state->part, bytes, length);
            state->filled += length;
            if (state->filled == FFM_PART_BYTES)
                end_part(state, from(XXH3_128bits_digest(&state->part)), only);
        }
        start += length;
        count -= length;
    }
}

ffm_hash FFM_HASH_BOX(const ffm_box *box, const void *(*readable)(uint64_t start, uint64_t bytes),
                      void (*part)(void *context, uint64_t place, const ffm_hash *hash), void *context)
{
    uint64_t total = box->width * box->height * box->depth;
    bool only = total <= FFM_PART_BYTES;
    if (only && box->height == 1 && box->depth == 1)
        return from(XXH3_128bits(readable == NULL ? (const void *)box->address : readable(box->address, box->width),
                                 box->width));
    parts_state state = {.readable = readable, .each = part, .context = context};
    XXH3_128bits_reset(&state.whole);
    for (uint64_t slice = 0; slice < box->depth; slice++)
        for (uint64_t row = 0; row < box->height; row++)
            take(&state, box->address + slice * box->slice + row * box->pitch, box->width, only);
    if (state.filled > 0)
        end_part(&state, from(XXH3_128bits_digest(&state.part)), only);
    return only ? state.last : from(XXH3_128bits_digest(&state.whole));
}
