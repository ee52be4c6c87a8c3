#include "machine_registers.h"

#include "machine_encoding.h"

enum { ZERO = 255, ZERO_UNIFORM = 63 };

static ffm_values general(const ffm_held *held, uint32_t number)
{
    return number == ZERO ? ffm_one_value(0) : held->general[number];
}

ffm_values ffm_uniform_register(const ffm_held *held, uint32_t number)
{
    return number == ZERO_UNIFORM ? ffm_one_value(0) : held->uniform[number];
}

ffm_values ffm_own_register(const ffm_executed *one, uint64_t word, uint32_t first)
{
    return one->uniform ? ffm_uniform_register(one->held, ffm_field(word, first, 6))
                        : general(one->held, ffm_field(word, first, 8));
}

void ffm_set_register(const ffm_executed *one, uint32_t number, ffm_values to)
{
    ffm_values *at =
        one->uniform ? &one->held->uniform[number % FFM_UNIFORMS] : &one->held->general[number % FFM_GENERALS];
    *at = one->executed == FFM_TRUE ? to : ffm_either_values(*at, to);
}

uint32_t ffm_destination(const ffm_executed *one)
{
    return ffm_field(one->word[0], 16, one->uniform ? 6 : 8);
}

void ffm_set_predicate(const ffm_executed *one, uint32_t number, uint8_t to)
{
    uint8_t *at = &one->held->predicates[number];
    if (number != FFM_ALWAYS && !one->uniform)
        *at = one->executed == FFM_TRUE || *at == to ? to : FFM_EITHER;
}

uint32_t ffm_modifiers(const ffm_executed *one)
{
    return ffm_field(one->word[1], 8, 19);
}
