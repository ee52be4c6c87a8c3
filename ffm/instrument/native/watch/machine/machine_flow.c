#include "machine_flow.h"

#include "machine_encoding.h"

enum { HALF = 4 };

/* Bits 0 to 8 of arithmetic, grouped by what it does with a half of an address. */
static const uint16_t
    /* Has predicates only. */
    of_predicates[] = {0x01c, 0x09c},
    /* Compares it: the result is a predicate. */
    comparing[] = {0x00b, 0x00c, 0x02a, 0x034, 0x08c, 0x102},
    /* Makes another number of it: a floating-point number, or a truth value. */
    consuming[] = {0x00a, 0x020, 0x021, 0x023, 0x028, 0x029, 0x02b, 0x030, 0x031, 0x032, 0x033, 0x03e,
                   0x045, 0x100, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109, 0x110, 0x111, 0x112, 0x113},
    /* Moves it, chooses it, adds to it, or operates on its bits. */
    passing[] = {0x002, 0x007, 0x008, 0x009, 0x00f, 0x010, 0x011, 0x012, 0x013, 0x016, 0x017, 0x01b, 0x01a, 0x035,
                 0x036, 0x046, 0x048, 0x04a, 0x076, 0x082, 0x087, 0x090, 0x091, 0x092, 0x096, 0x097, 0x09b, 0x101},
    /* The same, with b as the number of places to shift by. */
    shifting[] = {0x019, 0x099},
    /* Adds c to the product of a and b. */
    multiplying[] = {0x024, 0x025, 0x027, 0x0a4, 0x0a5},
    /* Has only one or two operands: the fields of the others are 0, which would name a register. */
    of_one[] = {0x002, 0x082}, of_two[] = {0x007, 0x017, 0x036, 0x048, 0x087},
    /* Works on pairs of registers. On Blackwell, any may, such as MOV.64 and IMNMX.S64. */
    wide[] = {0x025, 0x0a5, 0x097};

/* Bits 0 to 11 of others. */
static const uint16_t
    /* They name no register that they read. */
    without_sources[] = {0x547, 0x805, 0x806, 0x886, 0x918, 0x919, 0x91a, 0x91b, 0x941, 0x942, 0x944, 0x945, 0x946,
                         0x947, 0x948, 0x94d, 0x94e, 0x950, 0x95c, 0x95d, 0x992, 0x9ab, 0x9af, 0x9c3, 0xb1d},
    /* Load from an address, or from memory of a single thread or block, to which no other address leads. */
    loading[] = {0x381, 0x980, 0x981}, loading_own[] = {0x983, 0x984},
    /* The same for what stores. */
    storing[] = {0x385, 0x386, 0x985, 0x986}, storing_own[] = {0x387, 0x388, 0x988},
    /* Write a general or a uniform register with what no register carries, or with what is in another kind of them. */
    writing[] = {0x805, 0x806, 0x919}, writing_uniform[] = {0x9c3}, to_uniform[] = {0x3c2, 0x2ca},
    /* Loads that do not read the stack: from global memory, and from that of a block. */
    loading_others[] = {0x381, 0x981, 0x984},
    /* Exchange registers between threads. */
    exchanging[] = {0x389, 0x589, 0x989, 0xf89},
    /* Puts predicates among the bits of a register. */
    with_predicates[] = {0x803},
    /* Makes predicates of the bits of one. */
    to_predicates[] = {0x804};

enum { MULTIPLY = 0x024, ADDRESS_OF_CODE = 0x34e };

/* A sum of pairs of registers on Blackwell, a product of halves of floating-point numbers before. */
enum { SUM_OR_HALVES = 0x035 };

typedef enum { GENERAL_REGISTER, UNIFORM_REGISTER, OF_BANK, NUMBER } source;

typedef struct {
    source kind;
    uint32_t place; /* the register's number, the place in the bank, or the number */
} operand;

/* What the instruction works on. */
typedef struct {
    const uint64_t *word;
    ffm_carriers *carriers;
    uint32_t architecture, half; /* the place of the half */
    bool uniform;                /* its registers are uniform ones */
} instruction;

static uint32_t uniform_number(const instruction *one, uint64_t word, uint32_t first)
{
    return ffm_field(word, first, one->architecture < FFM_BLACKWELL ? 6 : 8);
}

static operand register_at(const instruction *one, uint64_t word, uint32_t first)
{
    return one->uniform ? (operand){UNIFORM_REGISTER, uniform_number(one, word, first)}
                        : (operand){GENERAL_REGISTER, ffm_field(word, first, 8)};
}

static bool has(const uint64_t *registers, uint32_t first, uint32_t count)
{
    for (uint32_t number = first; number < first + count && number < 256; number++)
        if ((registers[number / 64] >> number % 64 & 1) != 0)
            return true;
    return false;
}

/* The last register of each kind is always 0. */
static void set(const instruction *one, operand at, uint32_t count, bool carries)
{
    const bool uniform = at.kind == UNIFORM_REGISTER;
    const uint32_t last = uniform && one->architecture < FFM_BLACKWELL ? 63 : 255;
    uint64_t *registers = uniform ? one->carriers->uniform : one->carriers->general;
    for (uint32_t number = at.place; number < at.place + count && number < last; number++) {
        registers[number / 64] &= ~(1ULL << number % 64);
        registers[number / 64] |= (uint64_t)carries << number % 64;
    }
}

/* `count` is that of its registers, of four bytes each. */
static bool carried(const instruction *one, operand from, uint32_t count)
{
    switch (from.kind) {
    case GENERAL_REGISTER:
        return has(one->carriers->general, from.place, count);
    case UNIFORM_REGISTER:
        return has(one->carriers->uniform, from.place, count);
    case OF_BANK:
        return from.place < one->half + HALF && one->half < from.place + HALF * count;
    default:
        return false;
    }
}

/* Whether all threads execute it, so that it certainly writes its result. */
static bool certain(const instruction *one)
{
    return ffm_field(one->word[0], 12, 4) == FFM_ALWAYS;
}

static void write(const instruction *one, operand to, uint32_t count, bool carries)
{
    if (carries || certain(one))
        set(one, to, count, carries);
}

/* The operand that can be something else than a register of the instruction's kind. Bits 54 to 58 are the bank. */
static operand special(const instruction *one)
{
    const uint64_t word = one->word[0];
    switch (ffm_form_of(one->word)) {
    case FFM_FORM_REGISTERS:
        return register_at(one, word, 32);
    case FFM_FORM_CONSTANT_LAST:
    case FFM_FORM_CONSTANT:
        return (operand){ffm_bank(one->word) == 0 ? OF_BANK : NUMBER, ffm_place_in_bank(one->word)};
    case FFM_FORM_UNIFORM:
    case FFM_FORM_UNIFORM_LAST:
        return (operand){UNIFORM_REGISTER, uniform_number(one, word, 32)};
    default:
        return (operand){NUMBER, (uint32_t)(word >> 32)};
    }
}

/* Whether multiplying by it is a move or a shift: compilers do both in this way. */
static bool moves_by(uint32_t base, operand number)
{
    const bool power = (number.place & (number.place - 1)) == 0;
    return number.kind == NUMBER && (number.place == 1 || (power && base == MULTIPLY));
}

/* Whether the result is just the inverted bits of one operand, which compilers use for a divisor of 0, or just the sign
 * of one: neither turns an address into an address. */
static bool leaves_no_address(const instruction *one, uint32_t base, operand a, operand b)
{
    enum { TABLE = 0x012, TABLE_UNIFORM = 0x092, TURNED_A = 0x0f, TURNED_B = 0x33, TURNED_C = 0x55 };
    enum { RIGHT_SIGNED = 0x114, RIGHT_UNSIGNED = 0x116, LAST_BIT = 31 };
    const uint32_t modifiers = ffm_field(one->word[1], 8, 19), table = modifiers & 0xff;
    if (base == TABLE || base == TABLE_UNIFORM)
        return table == TURNED_A || table == TURNED_B || table == TURNED_C;
    return FFM_HOLDS(shifting, base) && b.kind == NUMBER && b.place == LAST_BIT && !carried(one, a, 1) &&
           (modifiers == RIGHT_SIGNED || modifiers == RIGHT_UNSIGNED);
}

static void calculate(const instruction *one, uint32_t base)
{
    const operand none = {NUMBER, 0};
    const ffm_form form = ffm_form_of(one->word);
    const bool last =
        form == FFM_FORM_IMMEDIATE_LAST || form == FFM_FORM_CONSTANT_LAST || form == FFM_FORM_UNIFORM_LAST;
    const bool alone = !last && FFM_HOLDS(of_one, base), lacks = alone || (!last && FFM_HOLDS(of_two, base));
    const bool pair = FFM_HOLDS(wide, base) || one->architecture >= FFM_BLACKWELL;
    const operand other = lacks ? none : register_at(one, one->word[1], 0);
    const operand a = alone ? none : register_at(one, one->word[0], 24);
    const operand b = last ? other : special(one), c = last ? special(one) : other;
    const uint32_t count = pair ? 2 : 1;
    bool carries = carried(one, c, count);
    if (FFM_HOLDS(multiplying, base))
        carries |= moves_by(base, b) && carried(one, a, 1);
    else if (FFM_HOLDS(shifting, base))
        carries |= carried(one, a, count);
    else
        carries |= carried(one, a, count) || carried(one, b, count);
    carries = carries && !leaves_no_address(one, base, a, b);
    /* If it may be a pair, it is not known whether the second register is overwritten. */
    const uint32_t written = carries || FFM_HOLDS(wide, base) ? count : 1;
    write(one, register_at(one, one->word[0], 16), written, carries);
}

/* Of 32 bits each. */
static uint32_t registers_of(const instruction *one)
{
    const uint32_t bytes = ffm_moved_bytes(one->word);
    return bytes < HALF ? bytes != 0 : bytes / HALF;
}

/* The registers that it reads are among those that three fields name, with some behind each. The first field names a
 * uniform one only where all are, and bit 91 says that another one does. An address is in a pair of them. */
static bool reads_carrier(const instruction *one, uint32_t kind)
{
    enum { MOST = 4, PAIR = 2 };
    const uint64_t *word = one->word, *general = one->carriers->general, *uniform = one->carriers->uniform;
    const uint32_t a = ffm_field(word[0], 24, 8), b = ffm_field(word[0], 32, 8), c = ffm_field(word[1], 0, 8);
    const bool some = one->uniform || ffm_names_uniform(word);
    const bool stores = FFM_HOLDS(storing, kind);
    const uint32_t stored = registers_of(one);
    if (FFM_HOLDS(storing_own, kind))
        return has(general, b, stored) || has(general, c, stored);
    if (some && (has(uniform, uniform_number(one, word[1], 0), PAIR) ||
                 (!stores && has(uniform, uniform_number(one, word[0], 32), PAIR)) ||
                 (one->uniform && has(uniform, uniform_number(one, word[0], 24), PAIR))))
        return true;
    if (stores)
        return has(general, a, PAIR) || has(general, b, stored) || (!some && has(general, c, stored));
    if (FFM_HOLDS(loading, kind))
        return has(general, a, PAIR);
    return has(general, a, MOST) || has(general, b, MOST) || has(general, c, MOST);
}

/* Whether the register at `behind` bytes after the first one that a load writes may get some of the half. With an
 * index, the load may come from any multiple of its size. */
static bool loads_half(const instruction *one, uint32_t behind)
{
    const uint32_t bytes = ffm_moved_bytes(one->word), own = bytes < HALF ? bytes : HALF;
    const uint32_t place = ffm_place_in_bank(one->word) + behind;
    if (ffm_bank(one->word) != 0)
        return false;
    if (ffm_has_index(one->word))
        return (one->half + bytes - behind + own - 1) % bytes < HALF + own - 1;
    return place < one->half + HALF && one->half < place + own;
}

static void load_constant(const instruction *one)
{
    operand to = register_at(one, one->word[0], 16);
    for (uint32_t behind = 0; behind < ffm_moved_bytes(one->word); behind += HALF, to.place++)
        write(one, to, 1, loads_half(one, behind));
}

static void save(const instruction *one)
{
    const uint32_t barrier = ffm_field(one->word[0], 24, 8);
    const bool carries = barrier < FFM_BARRIERS && (one->carriers->barriers >> barrier & 1) != 0;
    write(one, register_at(one, one->word[0], 16), 1, carries);
}

/* By a value of its own, or that of a register. */
static void set_barrier(const instruction *one, uint32_t barrier, bool carries)
{
    const uint16_t bit = (uint16_t)(1 << barrier);
    if (carries)
        one->carriers->barriers |= bit;
    else if (certain(one))
        one->carriers->barriers &= (uint16_t)~bit;
}

static bool is_uniform(uint32_t kind, uint32_t base)
{
    return (base >= 0x080 && base < 0x0c0) || base == 0x04a || kind == FFM_LOAD_UNIFORM_BLACKWELL;
}

bool ffm_of_uniform(const uint64_t word[2])
{
    return is_uniform(ffm_kind(word), ffm_base(word));
}

bool ffm_calculates(const uint64_t word[2])
{
    const uint32_t base = ffm_base(word);
    return FFM_HOLDS(comparing, base) || FFM_HOLDS(consuming, base) || FFM_HOLDS(passing, base) ||
           FFM_HOLDS(shifting, base) || FFM_HOLDS(multiplying, base);
}

uint32_t ffm_written_by(const uint64_t word[2])
{
    const uint32_t base = ffm_base(word);
    if (FFM_HOLDS(comparing, base))
        return 0;
    return FFM_HOLDS(wide, base) || FFM_HOLDS(consuming, base) ? 2 : 1;
}

bool ffm_may_read_stack(const uint64_t word[2])
{
    const uint32_t kind = ffm_kind(word), base = ffm_base(word);
    return !ffm_calculates(word) && !ffm_loads_constant(kind) && !FFM_HOLDS(of_predicates, base) &&
           !FFM_HOLDS(without_sources, kind) && !FFM_HOLDS(loading_others, kind) && !FFM_HOLDS(storing, kind) &&
           !FFM_HOLDS(storing_own, kind) && !FFM_HOLDS(writing, kind) && !FFM_HOLDS(to_uniform, kind) &&
           !FFM_HOLDS(exchanging, kind) && !FFM_HOLDS(with_predicates, kind) && !FFM_HOLDS(to_predicates, kind) &&
           kind != FFM_SAVE && kind != FFM_RESTORE && kind != ADDRESS_OF_CODE;
}

bool ffm_carried_by(const ffm_carriers *carriers, uint32_t first, uint32_t count)
{
    return has(carriers->general, first, count);
}

bool ffm_instruction_uses(uint32_t architecture, const uint64_t word[2], uint32_t place, ffm_carriers *carriers)
{
    const uint32_t kind = ffm_kind(word), base = ffm_base(word);
    const instruction one = {word, carriers, architecture, place, is_uniform(kind, base)};
    const operand to = register_at(&one, word[0], 16);
    if (kind == FFM_CALL_ELSEWHERE)
        return has(carriers->general, 0, FFM_FIRST_KEPT);
    if (kind == FFM_SAVE) {
        save(&one);
    } else if (kind == FFM_RESTORE) {
        set_barrier(&one, ffm_field(word[0], 24, 4), has(carriers->general, ffm_field(word[0], 32, 8), 1));
    } else if (kind == FFM_PART) {
        set_barrier(&one, ffm_barrier(word), false);
    } else if (ffm_loads_constant(kind)) {
        load_constant(&one);
    } else if (FFM_HOLDS(to_uniform, kind)) {
        write(&one, (operand){UNIFORM_REGISTER, uniform_number(&one, word[0], 16)}, 1,
              carried(&one, (operand){GENERAL_REGISTER, ffm_field(word[0], 24, 8)}, 1));
    } else if (FFM_HOLDS(exchanging, kind) || FFM_HOLDS(with_predicates, kind)) {
        /* Operands b and c tell which other threads, or which predicates. */
        write(&one, to, 1, carried(&one, (operand){GENERAL_REGISTER, ffm_field(word[0], 24, 8)}, 1));
    } else if (base == SUM_OR_HALVES && architecture < FFM_BLACKWELL) {
        write(&one, to, 1, false);
    } else if (FFM_HOLDS(passing, base) || FFM_HOLDS(shifting, base) || FFM_HOLDS(multiplying, base)) {
        calculate(&one, base);
    } else if (FFM_HOLDS(consuming, base)) {
        write(&one, to, 1, false);
    } else if (!FFM_HOLDS(comparing, base) && !FFM_HOLDS(of_predicates, base) && !FFM_HOLDS(without_sources, kind) &&
               !FFM_HOLDS(to_predicates, kind) && !FFM_HOLDS(loading_own, kind) && reads_carrier(&one, kind)) {
        return true;
    } else if (FFM_HOLDS(writing_uniform, kind)) {
        write(&one, (operand){UNIFORM_REGISTER, uniform_number(&one, word[0], 16)}, 1, false);
    } else if (FFM_HOLDS(writing, kind)) {
        write(&one, to, 1, false);
    } else if (FFM_HOLDS(loading, kind) || FFM_HOLDS(loading_own, kind)) {
        write(&one, to, registers_of(&one), false);
    }
    return false;
}
