#include "machine_values.h"

#include "machine_arithmetic.h"
#include "machine_encoding.h"
#include "machine_flow.h"
#include "machine_registers.h"

static void load_constant(const ffm_executed *one)
{
    const uint32_t bytes = ffm_moved_bytes(one->word), place = ffm_place_in_bank(one->word), to = ffm_destination(one);
    const bool indexed = ffm_has_index(one->word), parameters = ffm_bank(one->word) == 0;
    const ffm_values index = indexed ? ffm_own_register(one, one->word[0], 24) : ffm_one_value(0);
    if (parameters)
        ffm_bank_touch_indexed(one->of, index, place, bytes);
    /* Modes 0, 2 and the larger ones take no sign along. */
    const bool plain = parameters && ffm_is_one_value(index) && index.low <= UINT16_MAX &&
                       (ffm_field(one->word[1], 73 - 64, 1) == 0 || bytes > 2);
    for (uint32_t behind = 0; behind < bytes; behind += 4)
        ffm_set_register(one, to + behind / 4,
                         plain ? ffm_bank_number(one->of, place + index.low + behind, bytes < 4 ? bytes : 4)
                               : ffm_any_value);
}

/* The number of a block is less than how many there are. */
static ffm_values special_register(const ffm_executed *one)
{
    enum { BLOCK_X = 0x25, BLOCK_Z = 0x27 };
    const uint32_t which = ffm_field(one->word[1], 8, 8);
    const uint32_t blocks = which >= BLOCK_X && which <= BLOCK_Z ? one->of->given->blocks[which - BLOCK_X] : 0;
    return blocks == 0 ? ffm_any_value : (ffm_values){0, blocks - 1, 1};
}

/* Bits 0 to 11 of what writes no register and no predicate. */
static const uint16_t writing_nothing[] = {FFM_WAIT, FFM_RESTORE, 0x385, 0x386, 0x387,
                                           0x388,    0x547,       0x918, 0x91a, FFM_END_COLLECTIVE,
                                           0x941,    0x942,       0x944, 0x945, 0x946,
                                           0x947,    0x948,       0x94d, 0x950, 0x985,
                                           0x986,    0x988,       0x98e, 0x992, 0xb1d},
                      /* What writes up to four registers behind the one that it names, and a predicate. */
    writing_some[] = {0x34e, FFM_SAVE, 0x381, 0x389, 0x38c, 0x3a8, 0x589, 0x803, 0x805, 0x806, 0x886,
                      0x919, 0x94e,    0x980, 0x981, 0x983, 0x984, 0x989, 0x98c, 0x9a8, 0x9c3, 0xf89},
                      /* Of these, what writes no predicate. */
    writing_no_predicate[] = {0x34e, FFM_SAVE, 0x803, 0x805, 0x919, 0x94e, 0x983, 0x984, 0x9c3},
                      /* Of these, what writes one or two, or as many as it loads. */
    writing_one[] = {FFM_SAVE, 0x389, 0x589, 0x803, 0x806, 0x886, 0x919, 0x989, 0x9c3, 0xf89},
                      writing_pairs[] = {0x34e, 0x805, 0x94e}, loading[] = {0x381, 0x980, 0x981, 0x983, 0x984},
                      /* Of all, and of moves between them, what writes uniform registers. */
    writing_uniform[] = {0x2ca, 0x3c2, 0x3c4, 0x886, 0x9c3};

static uint32_t written_by(const ffm_executed *one)
{
    enum { MOST = 4 };
    if (FFM_HOLDS(writing_one, one->kind))
        return 1;
    if (FFM_HOLDS(writing_pairs, one->kind))
        return 2;
    const uint32_t bytes = FFM_HOLDS(loading, one->kind) ? ffm_moved_bytes(one->word) : 0;
    return bytes == 0 ? MOST : (bytes + 3) / 4;
}

/* Of what is from memory or other threads, nothing is known. */
static void write_some(const ffm_executed *one)
{
    enum { READ_SPECIAL = 0x919, READ_SPECIAL_UNIFORM = 0x9c3 };
    const bool special = one->kind == READ_SPECIAL || one->kind == READ_SPECIAL_UNIFORM;
    for (uint32_t behind = 0; behind < written_by(one); behind++)
        ffm_set_register(one, ffm_destination(one) + behind, special ? special_register(one) : ffm_any_value);
    if (FFM_HOLDS(writing_no_predicate, one->kind))
        return;
    const uint32_t predicate = ffm_modifiers(one) >> 9 & FFM_ALWAYS;
    one->held->predicates[predicate] = predicate == FFM_ALWAYS ? FFM_TRUE : FFM_EITHER;
}

/* What it reads of the bank, and leaves in registers. */
static void execute(ffm_executed *one)
{
    enum { WITH_PREDICATES = 0x01c, WITH_UNIFORM_PREDICATES = 0x09c };
    const ffm_form form = ffm_form_of(one->word);
    const bool calculates = ffm_calculates(one->word);
    one->uniform = ffm_of_uniform(one->word) || FFM_HOLDS(writing_uniform, one->kind);
    if (one->kind == FFM_CALL_ELSEWHERE) {
        for (uint32_t number = 0; number < FFM_FIRST_KEPT; number++) /* its results are there */
            one->held->general[number] = ffm_any_value;
        ffm_predicates_forget(one->held);
    } else if (ffm_loads_constant(one->kind)) {
        load_constant(one);
    } else if (calculates) {
        if ((form == FFM_FORM_CONSTANT || form == FFM_FORM_CONSTANT_LAST) && ffm_bank(one->word) == 0)
            ffm_bank_touch(one->of, ffm_place_in_bank(one->word), 8);
        ffm_calculate(one);
    } else if (FFM_HOLDS(writing_some, one->kind) || FFM_HOLDS(writing_uniform, one->kind)) {
        write_some(one);
    } else if (one->base == WITH_PREDICATES || one->base == WITH_UNIFORM_PREDICATES) {
        ffm_predicates_forget(one->held);
    } else if (!FFM_HOLDS(writing_nothing, one->kind)) {
        ffm_held_forget(one->held, 0);
    }
}

uint8_t ffm_execute(ffm_bank_use *of, const uint64_t word[2], ffm_held *held)
{
    ffm_executed one = {.of = of, .word = word, .held = held, .kind = ffm_kind(word), .base = ffm_base(word)};
    const uint32_t guard = ffm_field(word[0], 12, 4);
    const bool known = !ffm_of_uniform(word) || (guard & FFM_ALWAYS) == FFM_ALWAYS;
    one.executed = known ? ffm_predicate(held, guard) : FFM_EITHER;
    if (one.executed != FFM_FALSE)
        execute(&one);
    return one.executed;
}
