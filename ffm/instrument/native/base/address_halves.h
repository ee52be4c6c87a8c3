/* Looks for addresses among many bytes, most of which are no addresses: compares many upper halves at once. */
#ifndef FFM_ADDRESS_HALVES_H
#define FFM_ADDRESS_HALVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FFM_HALVES_AT_ONCE = 64 }; /* bytes */

typedef uint32_t ffm_four_halves __attribute__((vector_size(16), aligned(1), may_alias));
typedef uint64_t ffm_two_words __attribute__((vector_size(16)));

/* What the upper halves of all addresses in [low, high] have in common. */
typedef struct {
    uint32_t upper, shared; /* the common bits, and a mask of them */
} ffm_halves;

static inline ffm_halves ffm_halves_between(uint64_t low, uint64_t high)
{
    const uint64_t different = (low ^ high) >> 32;
    uint64_t shared = UINT32_MAX;
    while (different & shared)
        shared <<= 1;
    return (ffm_halves){(uint32_t)(low >> 32) & (uint32_t)shared, (uint32_t)shared};
}

/* Whether any of FFM_HALVES_AT_ONCE bytes' four-byte pieces can be an upper half. */
static inline bool ffm_halves_any(const char *bytes, ffm_halves wanted)
{
    ffm_two_words found = {0};
    for (size_t i = 0; i < FFM_HALVES_AT_ONCE; i += sizeof(ffm_four_halves))
        found |= (ffm_two_words)((*(const ffm_four_halves *)(bytes + i) & wanted.shared) == wanted.upper);
    return (found[0] | found[1]) != 0;
}

#endif
