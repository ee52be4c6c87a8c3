#include "register_values.h"

#include <string.h>

enum { ALWAYS = 7 };

ffm_values ffm_one_value(uint32_t number)
{
    return (ffm_values){number, number, 1};
}

bool ffm_is_one_value(ffm_values of)
{
    return of.low == of.high;
}

bool ffm_same_values(ffm_values one, ffm_values other)
{
    return one.low == other.low && one.high == other.high && one.step == other.step;
}

static uint32_t common(uint32_t one, uint32_t other)
{
    while (other != 0) {
        const uint32_t rest = one % other;
        one = other;
        other = rest;
    }
    return one;
}

/* What both may be. */
ffm_values ffm_either_values(ffm_values one, ffm_values other)
{
    if (ffm_same_values(one, other))
        return one;
    const uint32_t low = one.low < other.low ? one.low : other.low, far = one.low ^ other.low ^ low;
    const uint32_t step =
        common(common(ffm_is_one_value(one) ? 0 : one.step, ffm_is_one_value(other) ? 0 : other.step), far - low);
    return (ffm_values){low, one.high > other.high ? one.high : other.high, step == 0 ? 1 : step};
}

ffm_values ffm_sum_of_values(ffm_values one, ffm_values other)
{
    if (ffm_is_one_value(one) && ffm_is_one_value(other))
        return ffm_one_value(one.low + other.low);
    if (ffm_is_one_value(one))
        return ffm_sum_of_values(other, one);
    if (ffm_is_one_value(other) && other.low > INT32_MAX && one.low >= -other.low) /* less than before */
        return (ffm_values){one.low + other.low, one.high + other.low, one.step};
    if (one.high > UINT32_MAX - other.high)
        return ffm_any_value;
    return (ffm_values){one.low + other.low, one.high + other.high,
                        ffm_is_one_value(other) ? one.step : common(one.step, other.step)};
}

ffm_values ffm_product_of_values(ffm_values one, ffm_values other)
{
    if (ffm_is_one_value(one) && ffm_is_one_value(other))
        return ffm_one_value(one.low * other.low);
    if (ffm_is_one_value(one))
        return ffm_product_of_values(other, one);
    if (!ffm_is_one_value(other) || (uint64_t)one.high * other.low > UINT32_MAX)
        return ffm_any_value;
    return other.low == 0 ? other : (ffm_values){one.low * other.low, one.high * other.low, one.step * other.low};
}

void ffm_predicates_forget(ffm_held *held)
{
    memset(held->predicates, FFM_EITHER, ALWAYS);
    held->predicates[ALWAYS] = FFM_TRUE;
}

void ffm_held_forget(ffm_held *held, uint32_t first)
{
    for (uint32_t number = first; number < FFM_GENERALS; number++)
        held->general[number] = ffm_any_value;
    for (uint32_t number = 0; number < FFM_UNIFORMS; number++)
        held->uniform[number] = ffm_any_value;
    ffm_predicates_forget(held);
}

uint8_t ffm_predicate(const ffm_held *held, uint32_t field)
{
    const uint8_t truth = held->predicates[field & ALWAYS];
    return (field & 8) != 0 && truth != FFM_EITHER ? !truth : truth;
}

static bool join_values(ffm_values *to, const ffm_values *from, uint32_t count, bool unknown)
{
    bool changed = false;
    for (uint32_t number = 0; number < count; number++) {
        const ffm_values both = ffm_either_values(to[number], from[number]);
        if (ffm_same_values(both, to[number]))
            continue;
        to[number] = unknown ? ffm_any_value : both;
        changed = true;
    }
    return changed;
}

bool ffm_held_join(ffm_held *to, const ffm_held *from, bool unknown)
{
    bool changed = join_values(to->general, from->general, FFM_GENERALS, unknown);
    changed |= join_values(to->uniform, from->uniform, FFM_UNIFORMS, unknown);
    for (uint32_t number = 0; number < FFM_PREDICATES; number++) {
        uint8_t *at = &to->predicates[number];
        if (*at == FFM_EITHER || *at == from->predicates[number])
            continue;
        *at = FFM_EITHER;
        changed = true;
    }
    return changed;
}
