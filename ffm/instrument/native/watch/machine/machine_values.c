#include "machine_values.h"

#include <string.h>

#include "machine_encoding.h"
#include "machine_flow.h"
#include "machine_instruction.h"

enum { ZERO = 255, ZERO_UNIFORM = 63, ALWAYS = 7, KEPT = 16 };

static ffm_values general(const ffm_held *held, uint32_t number)
{
    return number == ZERO ? ffm_one_value(0) : held->general[number];
}

static ffm_values uniform(const ffm_held *held, uint32_t number)
{
    return number == ZERO_UNIFORM ? ffm_one_value(0) : held->uniform[number];
}

/* An instruction, what its registers hold, and whether it is executed. */
typedef struct {
    ffm_bank_use *of;
    const uint64_t *word;
    ffm_held *held;
    uint32_t kind, base;
    bool uniform;
    uint8_t executed;
} instruction;

static ffm_values own(const instruction *one, uint64_t word, uint32_t first)
{
    return one->uniform ? uniform(one->held, ffm_field(word, first, 6)) : general(one->held, ffm_field(word, first, 8));
}

static void set(const instruction *one, uint32_t number, ffm_values to)
{
    ffm_values *at =
        one->uniform ? &one->held->uniform[number % FFM_UNIFORMS] : &one->held->general[number % FFM_GENERALS];
    *at = one->executed == FFM_TRUE ? to : ffm_either_values(*at, to);
}

static uint32_t destination(const instruction *one)
{
    return ffm_field(one->word[0], 16, one->uniform ? 6 : 8);
}

static void set_predicate(const instruction *one, uint32_t number, uint8_t to)
{
    uint8_t *at = &one->held->predicates[number];
    if (number != ALWAYS && !one->uniform)
        *at = one->executed == FFM_TRUE || *at == to ? to : FFM_EITHER;
}

/* ---- the bank ---------------------------------------------------------------------------------------------------- */

static void mark(uint8_t *bits, uint32_t bit)
{
    bits[bit / 8] |= (uint8_t)(1 << bit % 8);
}

uint32_t ffm_followed_number(const ffm_given_values *given, uint32_t offset)
{
    enum { LARGEST = 1 << 20 };
    uint32_t number;
    memcpy(&number, given->bytes + offset, sizeof number);
    return number <= LARGEST ? number : UINT32_MAX;
}

/* The code reads so many bytes of the bank. What lies before the parameters may be the address of the bank itself. */
static void read_bank(ffm_bank_use *of, uint32_t place, uint32_t bytes)
{
    const uint32_t first = ffm_parameters_begin(of->architecture);
    if (place < first && !ffm_harmless_before_parameters(of->architecture, place))
        of->failed = true;
    for (uint32_t byte = place < first ? first : place; byte < place + bytes && byte - first < of->given->count; byte++)
        mark(of->result->read, byte - first);
}

/* A number of four bytes or fewer in the bank. */
static ffm_values in_bank(ffm_bank_use *of, uint32_t place, uint32_t bytes)
{
    const uint32_t first = ffm_parameters_begin(of->architecture), offset = place - first;
    const uint32_t word = offset & ~3u, within = offset - word;
    if (place < first || word + 4 > of->given->count || within + bytes > 4)
        return ffm_any_value;
    for (uint32_t byte = word; byte < word + 4; byte++)
        if (!of->given->known[byte])
            return ffm_any_value;
    mark(of->result->matters, word / 4);
    const uint32_t number = ffm_followed_number(of->given, word);
    if (number == UINT32_MAX)
        return ffm_any_value;
    return ffm_one_value(bytes == 4 ? number : number >> 8 * within & ((1u << 8 * bytes) - 1));
}

/* All places that an index leads to. */
static void read_indexed(ffm_bank_use *of, ffm_values index, uint32_t place, uint32_t bytes)
{
    if (place > INT16_MAX || index.high > UINT16_MAX) { /* any */
        memset(of->result->read, 0xff, sizeof of->result->read);
        return;
    }
    for (uint32_t number = index.low; number <= index.high; number += index.step)
        read_bank(of, place + number, bytes);
}

static void load_constant(const instruction *one)
{
    const uint32_t bytes = ffm_moved_bytes(one->word), place = ffm_place_in_bank(one->word), to = destination(one);
    const bool indexed = ffm_has_index(one->word), parameters = ffm_bank(one->word) == 0;
    const ffm_values index = indexed ? own(one, one->word[0], 24) : ffm_one_value(0);
    if (parameters)
        read_indexed(one->of, index, place, bytes);
    /* Modes 0, 2 and the larger ones take no sign along. */
    const bool plain = parameters && ffm_is_one_value(index) && index.low <= UINT16_MAX &&
                       (ffm_field(one->word[1], 73 - 64, 1) == 0 || bytes > 2);
    for (uint32_t behind = 0; behind < bytes; behind += 4)
        set(one, to + behind / 4,
            plain ? in_bank(one->of, place + index.low + behind, bytes < 4 ? bytes : 4) : ffm_any_value);
}

#define HOLDS(list, wanted) holds(list, sizeof list / sizeof *list, wanted)

static bool holds(const uint16_t *list, size_t count, uint32_t wanted)
{
    for (size_t i = 0; i < count; i++)
        if (list[i] == wanted)
            return true;
    return false;
}

/* Bits 0 to 8 of what writes no predicate: moves, choices, shifts, floating-point numbers. */
static const uint16_t without_predicates[] = {0x002, 0x007, 0x008, 0x016, 0x019, 0x020, 0x021, 0x023,
                                              0x028, 0x029, 0x02b, 0x031, 0x035, 0x036, 0x104, 0x105,
                                              0x106, 0x107, 0x108, 0x109, 0x110, 0x111, 0x112, 0x113};

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

/* What is in bits 72 to 90, where most modifiers are. */
static uint32_t modifiers(const instruction *one)
{
    return ffm_field(one->word[1], 8, 19);
}

/* The operand that can be another one than a register of the instruction's kind, as it is without modifiers. */
static ffm_values special(const instruction *one)
{
    const uint64_t word = one->word[0];
    switch (ffm_form_of(one->word)) {
    case FFM_FORM_REGISTERS:
        return own(one, word, 32);
    case FFM_FORM_UNIFORM:
    case FFM_FORM_UNIFORM_LAST:
        return uniform(one->held, ffm_field(word, 32, 6));
    case FFM_FORM_CONSTANT:
    case FFM_FORM_CONSTANT_LAST:
        return ffm_bank(one->word) == 0 ? in_bank(one->of, ffm_place_in_bank(one->word), 4) : ffm_any_value;
    default:
        return ffm_one_value((uint32_t)(word >> 32));
    }
}

/* Whether bits 62 and 63 are modifiers, and one is set. */
static bool is_modified(const instruction *one)
{
    const ffm_form form = ffm_form_of(one->word);
    return form != FFM_FORM_IMMEDIATE && form != FFM_FORM_IMMEDIATE_LAST && one->word[0] >> 62 != 0;
}

typedef struct {
    ffm_values a, b, c;
} operands;

static operands operands_of(const instruction *one)
{
    const ffm_form form = ffm_form_of(one->word);
    const bool last =
        form == FFM_FORM_IMMEDIATE_LAST || form == FFM_FORM_CONSTANT_LAST || form == FFM_FORM_UNIFORM_LAST;
    const ffm_values other = own(one, one->word[1], 0), unusual = special(one);
    return (operands){own(one, one->word[0], 24), last ? other : unusual, last ? unusual : other};
}

/* What is added for an operand: for a negative one all bits are turned, and 1 is added unless that comes as a carry. */
static uint64_t part(ffm_values of, bool negative, bool extended)
{
    return negative ? (uint64_t)~of.low + !extended : of.low;
}

/* Fields for predicates: the carries that come in, and those that go out. */
enum { ADD_FIXED = 0x18, ADD_EXTENDED = 4, ADD_NEGATIVE = 1, ADD_PLAIN = 0x781e0, ADD_CARRIES = 0x7e00 };

/* No uniform predicates are followed. */
static uint8_t carried_in(const instruction *one, bool extended, uint32_t field)
{
    if (!extended)
        return FFM_FALSE;
    return one->uniform ? FFM_EITHER : ffm_predicate(one->held, field);
}

static ffm_values add(const instruction *one, uint8_t *carry)
{
    const uint32_t bits = modifiers(one);
    const bool extended = (bits & ADD_EXTENDED) != 0, negative_a = (bits & ADD_NEGATIVE) != 0;
    const ffm_form form = ffm_form_of(one->word);
    const bool immediate = form == FFM_FORM_IMMEDIATE, b_is_special = immediate || form == FFM_FORM_REGISTERS ||
                                                                      form == FFM_FORM_CONSTANT ||
                                                                      form == FFM_FORM_UNIFORM;
    const bool negative_b = !immediate && one->word[0] >> 63 != 0;
    const operands given = operands_of(one);
    const bool known = (bits & (ADD_FIXED | 2)) == 0 && (immediate || (one->word[0] >> 62 & 1) == 0) && b_is_special;
    *carry = FFM_EITHER;
    if (!known || (!extended && (bits & ~(uint32_t)(ADD_CARRIES | ADD_NEGATIVE)) != ADD_PLAIN))
        return ffm_any_value;
    const uint8_t first = carried_in(one, extended, bits >> 15), second = carried_in(one, extended, bits >> 5 & 15);
    if (ffm_is_one_value(given.a) && ffm_is_one_value(given.b) && ffm_is_one_value(given.c) && first != FFM_EITHER &&
        second != FFM_EITHER) {
        const uint64_t all =
            part(given.a, negative_a, extended) + part(given.b, negative_b, extended) + given.c.low + first + second;
        *carry = all >> 32 <= 1 ? (uint8_t)(all >> 32) : FFM_EITHER;
        return ffm_one_value((uint32_t)all);
    }
    return extended || negative_a || negative_b ? ffm_any_value
                                                : ffm_sum_of_values(ffm_sum_of_values(given.a, given.b), given.c);
}

static void do_add(const instruction *one)
{
    uint8_t carry;
    const ffm_values result = add(one, &carry);
    const uint32_t bits = modifiers(one), other = bits >> 12 & ALWAYS;
    set(one, destination(one), result);
    set_predicate(one, bits >> 9 & ALWAYS, other == ALWAYS ? carry : FFM_EITHER);
    set_predicate(one, other, FFM_EITHER);
}

/* LT, EQ, LE, GT, NE, GE of two numbers, where equal ones compare as `lower`, unless that is FFM_EITHER. */
static uint8_t compared(uint32_t how, int64_t a, int64_t b, uint8_t lower, bool extended)
{
    const bool less = (how & 1) != 0, equal = (how & 2) != 0, greater = (how & 4) != 0;
    if (a != b)
        return a < b ? less : greater;
    return extended ? lower : equal;
}

static uint8_t compare(const instruction *one)
{
    enum { EXTENDED = 1, SIGNED = 2, AND = 0, OR = 1 };
    const uint32_t bits = modifiers(one), how = bits >> 4 & 7, combined = bits >> 2 & 3;
    const bool extended = (bits & EXTENDED) != 0, with_sign = (bits & SIGNED) != 0;
    const ffm_values a = own(one, one->word[0], 24), b = special(one);
    const uint8_t other = ffm_predicate(one->held, bits >> 15),
                  lower = ffm_predicate(one->held, ffm_field(one->word[1], 4, 4));
    if (is_modified(one) || combined > OR || (bits & 0x180) != 0)
        return FFM_EITHER;
    uint8_t truth = FFM_EITHER;
    if (ffm_is_one_value(a) && ffm_is_one_value(b))
        truth = compared(how, with_sign ? (int32_t)a.low : (int64_t)a.low, with_sign ? (int32_t)b.low : (int64_t)b.low,
                         lower, extended);
    const uint8_t decides = combined == OR;
    if (truth == decides || other == decides)
        return decides;
    return truth == FFM_EITHER || other == FFM_EITHER ? FFM_EITHER : !decides;
}

static void do_compare(const instruction *one)
{
    const uint32_t bits = modifiers(one);
    set_predicate(one, bits >> 9 & ALWAYS, compare(one));
    set_predicate(one, bits >> 12 & ALWAYS, FFM_EITHER);
}

static uint32_t by_table(uint32_t table, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (uint32_t place = 0; place < 8; place++)
        if ((table >> place & 1) != 0)
            result |= ((place & 4) != 0 ? a : ~a) & ((place & 2) != 0 ? b : ~b) & ((place & 1) != 0 ? c : ~c);
    return result;
}

/* The lesser or the larger of two numbers, as a predicate says that is always true or never; before Hopper (IMNMX) its
 * modifiers lie elsewhere. */
static ffm_values extreme(const instruction *one, ffm_values a, ffm_values b)
{
    enum { LARGER = 0x40000, PLAIN = 0x3fe00, SIGNED = 1, PLAIN_BEFORE = 0x38000, SIGNED_BEFORE = 2 };
    const bool before = one->of->architecture < FFM_HOPPER;
    const uint32_t bits = modifiers(one), with_sign = before ? SIGNED_BEFORE : SIGNED;
    if ((bits & ~(LARGER | with_sign)) != (before ? PLAIN_BEFORE : PLAIN) || !ffm_is_one_value(a) ||
        !ffm_is_one_value(b))
        return ffm_any_value;
    const bool less = (bits & with_sign) != 0 ? (int32_t)a.low < (int32_t)b.low : a.low < b.low;
    return less == ((bits & LARGER) == 0) ? a : b;
}

static ffm_values extended_product(operands given, bool inverse, uint8_t carry)
{
    if (!ffm_is_one_value(given.a) || !ffm_is_one_value(given.b) || !ffm_is_one_value(given.c) || carry == FFM_EITHER)
        return ffm_any_value;
    return ffm_one_value(given.a.low * given.b.low + (inverse ? ~given.c.low : given.c.low) + carry);
}

/* A number moved to the left, or a third operand to the right. */
static ffm_values shifted(operands given, uint32_t bits)
{
    enum { LEFT = 6, RIGHT = 0x116 };
    if (!ffm_is_one_value(given.b) || given.b.low >= 32)
        return ffm_any_value;
    if (bits == LEFT)
        return ffm_product_of_values(given.a, ffm_one_value(1u << given.b.low));
    return bits == RIGHT && ffm_is_one_value(given.c) ? ffm_one_value(given.c.low >> given.b.low) : ffm_any_value;
}

/* What it writes to its register; any number if one bit of it is not known. */
static ffm_values calculated(const instruction *one)
{
    enum { PLAIN_PRODUCT = 0x78e02, UNSIGNED_PRODUCT = 0x78e00, PLAIN_TABLE = 0x78e };
    enum { EXTENDED_FIXED = 0x7fff, EXTENDED_PRODUCT = 0x0e06, EXTENDED_INVERSE = 0x0e0e, INVERSE = 8 };
    enum { PLAIN_SHIFT_ADD = 0x78e00, PLACES = 0xf8 };
    enum {
        MOVE = 0x002,
        MULTIPLY = 0x024,
        ADD_TWO = 0x036,
        SHIFT = 0x019,
        EXTREME = 0x048,
        EXTREME_BEFORE = 0x017,
        SHIFT_ADD = 0x011,
        TABLE = 0x012,
        HALVES = 0x035,
        UNIFORM = 0x080
    };
    const uint32_t bits = modifiers(one), base = one->base & ~(uint32_t)(one->uniform ? UNIFORM : 0);
    const operands given = operands_of(one);
    if (is_modified(one))
        return ffm_any_value;
    switch (base) {
    case MOVE:
        return bits == (one->uniform ? 0 : 0xf) ? special(one) : ffm_any_value;
    case MULTIPLY:
        if ((bits & EXTENDED_FIXED) == EXTENDED_PRODUCT || (bits & EXTENDED_FIXED) == EXTENDED_INVERSE)
            return extended_product(given, bits & INVERSE,
                                    one->uniform ? FFM_EITHER : ffm_predicate(one->held, bits >> 15));
        return bits == PLAIN_PRODUCT || bits == UNSIGNED_PRODUCT
                   ? ffm_sum_of_values(ffm_product_of_values(given.a, given.b), given.c)
                   : ffm_any_value;
    case ADD_TWO:
        return bits == 0 && one->of->architecture >= FFM_HOPPER ? ffm_sum_of_values(given.a, special(one))
                                                                : ffm_any_value;
    case SHIFT:
        return shifted(given, bits);
    case EXTREME:
    case EXTREME_BEFORE:
        return (base == EXTREME) == (one->of->architecture >= FFM_HOPPER) && !one->uniform
                   ? extreme(one, given.a, special(one))
                   : ffm_any_value;
    case SHIFT_ADD:
        return (bits & ~(uint32_t)PLACES) == PLAIN_SHIFT_ADD
                   ? ffm_sum_of_values(ffm_product_of_values(given.a, ffm_one_value(1u << (bits >> 3 & 31))),
                                       special(one))
                   : ffm_any_value;
    case TABLE:
        if (bits >> 8 == PLAIN_TABLE && ffm_is_one_value(given.a) && ffm_is_one_value(given.b) &&
            ffm_is_one_value(given.c))
            return ffm_one_value(by_table(bits & 0xff, given.a.low, given.b.low, given.c.low));
        return ffm_any_value;
    case HALVES: /* a number is added to -0 times 0 */
        return !one->uniform && bits == 1 && ffm_form_of(one->word) == FFM_FORM_IMMEDIATE_LAST &&
                       ffm_field(one->word[0], 24, 8) == ZERO && ffm_field(one->word[1], 0, 8) == ZERO
                   ? special(one)
                   : ffm_any_value;
    default:
        return ffm_any_value;
    }
}

static void calculate(const instruction *one)
{
    enum { ADD = 0x010, ADD_UNIFORM = 0x090, COMPARE = 0x00c };
    if (one->base == ADD || one->base == ADD_UNIFORM) {
        do_add(one);
    } else if (one->base == COMPARE) {
        do_compare(one);
    } else {
        const ffm_values first = calculated(one);
        const uint32_t written = ffm_written_by(one->word);
        for (uint32_t behind = 0; behind < written; behind++)
            set(one, destination(one) + behind, behind == 0 && written == 1 ? first : ffm_any_value);
        if (!HOLDS(without_predicates, one->base))
            set_predicate(one, modifiers(one) >> 9 & ALWAYS, FFM_EITHER);
        if (written == 0)
            ffm_predicates_forget(one->held);
    }
}

/* The number of a block is less than how many there are. */
static ffm_values special_register(const instruction *one)
{
    enum { BLOCK_X = 0x25, BLOCK_Z = 0x27 };
    const uint32_t which = ffm_field(one->word[1], 8, 8);
    const uint32_t blocks = which >= BLOCK_X && which <= BLOCK_Z ? one->of->given->blocks[which - BLOCK_X] : 0;
    return blocks == 0 ? ffm_any_value : (ffm_values){0, blocks - 1, 1};
}

/* Bits 0 to 11 of what writes no register and no predicate. */
static const uint16_t writing_nothing[] = {0x348, FFM_RESTORE, 0x385, 0x386, 0x387, 0x388, 0x547, 0x918,
                                           0x91a, 0x941,       0x942, 0x944, 0x945, 0x946, 0x947, 0x948,
                                           0x94d, 0x950,       0x985, 0x986, 0x988, 0x98e, 0x992, 0xb1d},
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

static uint32_t written_by(const instruction *one)
{
    enum { MOST = 4 };
    if (HOLDS(writing_one, one->kind))
        return 1;
    if (HOLDS(writing_pairs, one->kind))
        return 2;
    const uint32_t bytes = HOLDS(loading, one->kind) ? ffm_moved_bytes(one->word) : 0;
    return bytes == 0 ? MOST : (bytes + 3) / 4;
}

/* Of what is from memory or other threads, nothing is known. */
static void write_some(const instruction *one)
{
    enum { READ_SPECIAL = 0x919, READ_SPECIAL_UNIFORM = 0x9c3 };
    const bool special = one->kind == READ_SPECIAL || one->kind == READ_SPECIAL_UNIFORM;
    for (uint32_t behind = 0; behind < written_by(one); behind++)
        set(one, destination(one) + behind, special ? special_register(one) : ffm_any_value);
    if (HOLDS(writing_no_predicate, one->kind))
        return;
    const uint32_t predicate = modifiers(one) >> 9 & ALWAYS;
    one->held->predicates[predicate] = predicate == ALWAYS ? FFM_TRUE : FFM_EITHER;
}

/* What it reads of the bank, and leaves in registers. */
static void execute(instruction *one)
{
    enum { WITH_PREDICATES = 0x01c, WITH_UNIFORM_PREDICATES = 0x09c };
    const ffm_form form = ffm_form_of(one->word);
    const bool calculates = ffm_calculates(one->word);
    one->uniform = ffm_of_uniform(one->word) || HOLDS(writing_uniform, one->kind);
    if (one->kind == FFM_CALL_ELSEWHERE) {
        for (uint32_t number = 0; number < KEPT; number++) /* its results are there */
            one->held->general[number] = ffm_any_value;
        ffm_predicates_forget(one->held);
    } else if (ffm_loads_constant(one->kind)) {
        load_constant(one);
    } else if (calculates) {
        if ((form == FFM_FORM_CONSTANT || form == FFM_FORM_CONSTANT_LAST) && ffm_bank(one->word) == 0)
            read_bank(one->of, ffm_place_in_bank(one->word), 8);
        calculate(one);
    } else if (HOLDS(writing_some, one->kind) || HOLDS(writing_uniform, one->kind)) {
        write_some(one);
    } else if (one->base == WITH_PREDICATES || one->base == WITH_UNIFORM_PREDICATES) {
        ffm_predicates_forget(one->held);
    } else if (!HOLDS(writing_nothing, one->kind)) {
        ffm_held_forget(one->held, 0);
    }
}

uint8_t ffm_execute(ffm_bank_use *of, const uint64_t word[2], ffm_held *held)
{
    instruction one = {.of = of, .word = word, .held = held, .kind = ffm_kind(word), .base = ffm_base(word)};
    const uint32_t guard = ffm_field(word[0], 12, 4);
    const bool known = !ffm_of_uniform(word) || (guard & ALWAYS) == ALWAYS;
    one.executed = known ? ffm_predicate(held, guard) : FFM_EITHER;
    if (one.executed != FFM_FALSE)
        execute(&one);
    return one.executed;
}
