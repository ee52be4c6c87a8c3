#include "machine_arithmetic.h"

#include "machine_encoding.h"
#include "machine_flow.h"

enum { ZERO = 255 };

/* Bits 0 to 8 of what writes no predicate: moves, choices, shifts, floating-point numbers. */
static const uint16_t without_predicates[] = {0x002, 0x007, 0x008, 0x016, 0x019, 0x020, 0x021, 0x023,
                                              0x028, 0x029, 0x02b, 0x031, 0x035, 0x036, 0x104, 0x105,
                                              0x106, 0x107, 0x108, 0x109, 0x110, 0x111, 0x112, 0x113};

/* The operand that can be another one than a register of the instruction's kind, as it is without modifiers. */
static ffm_values special(const ffm_executed *one)
{
    const uint64_t word = one->word[0];
    switch (ffm_form_of(one->word)) {
    case FFM_FORM_REGISTERS:
        return ffm_own_register(one, word, 32);
    case FFM_FORM_UNIFORM:
    case FFM_FORM_UNIFORM_LAST:
        return ffm_uniform_register(one->held, ffm_field(word, 32, 6));
    case FFM_FORM_CONSTANT:
    case FFM_FORM_CONSTANT_LAST:
        return ffm_bank(one->word) == 0 ? ffm_bank_number(one->of, ffm_place_in_bank(one->word), 4) : ffm_any_value;
    default:
        return ffm_one_value((uint32_t)(word >> 32));
    }
}

/* Whether bits 62 and 63 are modifiers, and one is set. */
static bool is_modified(const ffm_executed *one)
{
    const ffm_form form = ffm_form_of(one->word);
    return form != FFM_FORM_IMMEDIATE && form != FFM_FORM_IMMEDIATE_LAST && one->word[0] >> 62 != 0;
}

typedef struct {
    ffm_values a, b, c;
} operands;

static operands operands_of(const ffm_executed *one)
{
    const ffm_form form = ffm_form_of(one->word);
    const bool last =
        form == FFM_FORM_IMMEDIATE_LAST || form == FFM_FORM_CONSTANT_LAST || form == FFM_FORM_UNIFORM_LAST;
    const ffm_values other = ffm_own_register(one, one->word[1], 0), unusual = special(one);
    return (operands){ffm_own_register(one, one->word[0], 24), last ? other : unusual, last ? unusual : other};
}

/* What is added for an operand. For a negated one, all bits are inverted, and 1 is added unless it comes as a carry. */
static uint64_t part(ffm_values of, bool negative, bool extended)
{
    return negative ? (uint64_t)~of.low + !extended : of.low;
}

/* Fields for predicates: the carries that come in, and those that go out. */
enum { ADD_FIXED = 0x18, ADD_EXTENDED = 4, ADD_NEGATIVE = 1, ADD_PLAIN = 0x781e0, ADD_CARRIES = 0x7e00 };

/* No uniform predicates are followed. */
static uint8_t carried_in(const ffm_executed *one, bool extended, uint32_t field)
{
    if (!extended)
        return FFM_FALSE;
    return one->uniform ? FFM_EITHER : ffm_predicate(one->held, field);
}

static ffm_values add(const ffm_executed *one, uint8_t *carry)
{
    const uint32_t bits = ffm_modifiers(one);
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

static void do_add(const ffm_executed *one)
{
    uint8_t carry;
    const ffm_values result = add(one, &carry);
    const uint32_t bits = ffm_modifiers(one), other = bits >> 12 & FFM_ALWAYS;
    ffm_set_register(one, ffm_destination(one), result);
    ffm_set_predicate(one, bits >> 9 & FFM_ALWAYS, other == FFM_ALWAYS ? carry : FFM_EITHER);
    ffm_set_predicate(one, other, FFM_EITHER);
}

/* LT, EQ, LE, GT, NE, GE of two numbers. Equal ones compare as `lower`, unless that is FFM_EITHER. */
static uint8_t compared(uint32_t how, int64_t a, int64_t b, uint8_t lower, bool extended)
{
    const bool less = (how & 1) != 0, equal = (how & 2) != 0, greater = (how & 4) != 0;
    if (a != b)
        return a < b ? less : greater;
    return extended ? lower : equal;
}

static uint8_t compare(const ffm_executed *one)
{
    enum { EXTENDED = 1, SIGNED = 2, AND = 0, OR = 1 };
    const uint32_t bits = ffm_modifiers(one), how = bits >> 4 & 7, combined = bits >> 2 & 3;
    const bool extended = (bits & EXTENDED) != 0, with_sign = (bits & SIGNED) != 0;
    const ffm_values a = ffm_own_register(one, one->word[0], 24), b = special(one);
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

static void do_compare(const ffm_executed *one)
{
    const uint32_t bits = ffm_modifiers(one);
    ffm_set_predicate(one, bits >> 9 & FFM_ALWAYS, compare(one));
    ffm_set_predicate(one, bits >> 12 & FFM_ALWAYS, FFM_EITHER);
}

static uint32_t by_table(uint32_t table, uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t result = 0;
    for (uint32_t place = 0; place < 8; place++)
        if ((table >> place & 1) != 0)
            result |= ((place & 4) != 0 ? a : ~a) & ((place & 2) != 0 ? b : ~b) & ((place & 1) != 0 ? c : ~c);
    return result;
}

/* The lesser or the larger of two numbers, as a predicate says that is always or never true. Before Hopper (IMNMX), its
 * modifiers lie elsewhere. */
static ffm_values extreme(const ffm_executed *one, ffm_values a, ffm_values b)
{
    enum { LARGER = 0x40000, PLAIN = 0x3fe00, SIGNED = 1, PLAIN_BEFORE = 0x38000, SIGNED_BEFORE = 2 };
    const bool before = one->of->architecture < FFM_HOPPER;
    const uint32_t bits = ffm_modifiers(one), with_sign = before ? SIGNED_BEFORE : SIGNED;
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
static ffm_values calculated(const ffm_executed *one)
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
    const uint32_t bits = ffm_modifiers(one), base = one->base & ~(uint32_t)(one->uniform ? UNIFORM : 0);
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

void ffm_calculate(const ffm_executed *one)
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
            ffm_set_register(one, ffm_destination(one) + behind, behind == 0 && written == 1 ? first : ffm_any_value);
        if (!FFM_HOLDS(without_predicates, one->base))
            ffm_set_predicate(one, ffm_modifiers(one) >> 9 & FFM_ALWAYS, FFM_EITHER);
        if (written == 0)
            ffm_predicates_forget(one->held);
    }
}
