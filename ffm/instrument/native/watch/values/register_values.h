/* Which numbers a GPU register may hold: those from `low` to `high`, `step` apart. */
#ifndef FFM_REGISTER_VALUES_H
#define FFM_REGISTER_VALUES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t low, high, step;
} ffm_values;

static const ffm_values ffm_any_value = {0, UINT32_MAX, 1};

ffm_values ffm_one_value(uint32_t number);
bool ffm_is_one_value(ffm_values of);
bool ffm_same_values(ffm_values one, ffm_values other);

/* At least the values of both. */
ffm_values ffm_either_values(ffm_values one, ffm_values other);

/* At least the 32-bit sums and products of any value of one with any value of the other. */
ffm_values ffm_sum_of_values(ffm_values one, ffm_values other);
ffm_values ffm_product_of_values(ffm_values one, ffm_values other);

enum { FFM_FALSE, FFM_TRUE, FFM_EITHER };

enum { FFM_GENERALS = 256, FFM_UNIFORMS = 64, FFM_PREDICATES = 8 };

/* What all registers hold. */
typedef struct {
    ffm_values general[FFM_GENERALS], uniform[FFM_UNIFORMS];
    uint8_t predicates[FFM_PREDICATES]; /* FFM_FALSE, FFM_TRUE or FFM_EITHER; no uniform ones are followed */
} ffm_held;

/* Nothing is known any more of general registers from the first one on, of all uniform ones and of predicates; or only
 * of predicates. */
void ffm_held_forget(ffm_held *held, uint32_t first);
void ffm_predicates_forget(ffm_held *held);

/* The predicate that a field of four bits names; the last bit negates it. */
uint8_t ffm_predicate(const ffm_held *held, uint32_t field);

/* Let registers also hold what other registers hold. If `unknown`, what changes becomes unknown. Returns whether
 * anything changes. */
bool ffm_held_join(ffm_held *to, const ffm_held *from, bool unknown);

#endif
