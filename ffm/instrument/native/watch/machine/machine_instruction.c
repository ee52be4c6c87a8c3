#include "machine_instruction.h"

#include <stddef.h>

#include "machine_encoding.h"

/* Bits 0 to 8 of arithmetic, moves, comparisons and conversions, which have all of these forms. In ascending order. */
static const uint16_t arithmetic[] = {
    0x002, 0x007, 0x008, 0x009, 0x00a, 0x00b, 0x00c, 0x00f, 0x010, 0x011, 0x012, 0x013, 0x015, 0x016, 0x017,
    0x019, 0x01a, 0x01b, 0x01c, 0x020, 0x021, 0x023, 0x024, 0x025, 0x027, 0x028, 0x029, 0x02a, 0x02b, 0x030,
    0x031, 0x032, 0x033, 0x034, 0x035, 0x036, 0x038, 0x03e, 0x045, 0x046, 0x048, 0x04a, 0x054, 0x056, 0x05a,
    0x076, 0x082, 0x085, 0x087, 0x08c, 0x090, 0x091, 0x092, 0x096, 0x097, 0x099, 0x09b, 0x09c, 0x0a4, 0x0a5,
    0x0bd, 0x0bf, 0x100, 0x101, 0x102, 0x104, 0x105, 0x106, 0x107, 0x108, 0x109, 0x110, 0x111, 0x112, 0x113,
};

/* Bits 0 to 11 of others that read no bank: memory, votes, barriers, special registers. In ascending order. */
static const uint16_t others[] = {
    0x237, 0x23c, 0x2ca, 0x2cc, 0x31c, 0x343, 0x348, 0x34e, 0x355, 0x381, 0x385, 0x386, 0x387, 0x388, 0x389,
    0x38b, 0x38c, 0x38d, 0x3a1, 0x3a9, 0x3aa, 0x3c2, 0x3c4, 0x589, 0x58d, 0x5ab, 0x803, 0x804, 0x805, 0x806,
    0x82f, 0x83b, 0x886, 0x918, 0x919, 0x91a, 0x91b, 0x941, 0x942, 0x945, 0x946, 0x948, 0x94d, 0x94e, 0x950,
    0x956, 0x95c, 0x95d, 0x97e, 0x980, 0x981, 0x983, 0x984, 0x985, 0x986, 0x987, 0x988, 0x989, 0x98a, 0x98c,
    0x98e, 0x98f, 0x992, 0x9a2, 0x9a6, 0x9a8, 0x9ab, 0x9af, 0x9c3, 0xb1d, 0xf55, 0xf89, 0xf8c, 0xfae,
};

static const ffm_bank_read everything = {.all = true}, nothing = {.all = false};

static bool holds(const uint16_t *sorted, size_t count, uint16_t wanted)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sorted[middle] == wanted)
            return true;
        if (sorted[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

uint32_t ffm_parameters_begin(uint32_t architecture)
{
    switch (architecture) {
    case 75:
    case 80:
    case 86:
    case 87:
    case 89:
        return 0x160;
    case 90:
        return 0x210;
    case 100:
    case 103:
    case 110:
    case 120:
    case 121:
        return 0x380;
    default:
        return 0;
    }
}

/* The shape of the launch, the stack and where all threads' stacks are, and a descriptor of memory. */
bool ffm_harmless_before_parameters(uint32_t architecture, uint32_t place)
{
    if (architecture >= FFM_BLACKWELL)
        return place >= 0x358 && place < 0x380;
    if (place < 0x18 || place == 0x20 || place == 0x24 || place == 0x28)
        return true;
    return architecture == FFM_HOPPER ? place == 0x208 : architecture > FFM_TURING && place == 0x118;
}

static ffm_bank_read read_of(const uint64_t word[2], uint32_t bytes)
{
    if (ffm_bank(word) != 0)
        return (ffm_bank_read){.other = true};
    return (ffm_bank_read){.begin = ffm_place_in_bank(word), .bytes = bytes};
}

static ffm_bank_read of_load(const uint64_t word[2])
{
    const uint32_t kind = ffm_kind(word), width = ffm_moved_bytes(word);
    const bool mode = ffm_field(word[1], 78 - 64, 2) != 0;
    const bool names_uniform = kind == FFM_LOAD_UNIFORM_BLACKWELL || kind == FFM_LOAD_UNIFORM_INDEX;
    const bool unused = kind == FFM_LOAD_UNIFORM && ffm_field(word[0], 24, 8) != 0;
    if (mode || unused || width == 0 || ffm_names_uniform(word) != names_uniform)
        return everything;
    ffm_bank_read read = read_of(word, width);
    read.indexed = read.bytes != 0 && ffm_has_index(word);
    return read;
}

static int64_t within(uint64_t offset, int64_t distance, uint64_t bytes)
{
    const int64_t target = (int64_t)offset + FFM_INSTRUCTION_BYTES + distance;
    return target >= 0 && (uint64_t)target < bytes && target % FFM_INSTRUCTION_BYTES == 0 ? target : -1;
}

int64_t ffm_branch_target(uint32_t architecture, const uint64_t word[2], uint64_t offset, uint64_t bytes)
{
    const uint32_t upper = ffm_field(word[1], 0, 18);
    int64_t distance = (int32_t)(word[0] >> 32 & ~3ULL);
    if (upper != (distance < 0 ? (1u << 18) - 1 : 0))
        return -1;
    if (architecture >= FFM_HOPPER)
        distance = distance * 256 + ffm_field(word[0], 16, 8) * 4;
    return within(offset, distance, bytes);
}

int64_t ffm_meeting_target(const uint64_t word[2], uint64_t offset, uint64_t bytes)
{
    return within(offset, (int32_t)(word[0] >> 32 & ~3ULL), bytes);
}

static ffm_bank_read of_arithmetic(uint32_t architecture, const uint64_t word[2])
{
    enum { WIDEST = 8 };
    switch (ffm_form_of(word)) {
    case FFM_FORM_REGISTERS:
    case FFM_FORM_IMMEDIATE_LAST:
    case FFM_FORM_IMMEDIATE:
        return nothing;
    case FFM_FORM_UNIFORM:
    case FFM_FORM_UNIFORM_LAST:
        return ffm_names_uniform(word) ? nothing : everything;
    case FFM_FORM_CONSTANT_LAST:
    case FFM_FORM_CONSTANT: /* bit 91: of a bank whose address is in a register */
        return architecture >= FFM_HOPPER || ffm_names_uniform(word) ? everything : read_of(word, WIDEST);
    default:
        return everything;
    }
}

ffm_bank_read ffm_instruction_reads(uint32_t architecture, const uint64_t word[2], uint64_t offset, uint64_t bytes)
{
    const uint16_t kind = (uint16_t)ffm_kind(word), base = (uint16_t)ffm_base(word);
    if (kind == FFM_BRANCH || kind == FFM_BRANCH_UNIFORM || kind == FFM_CALL)
        return ffm_branch_target(architecture, word, offset, bytes) < 0 ? everything : nothing;
    if (ffm_loads_constant(kind) &&
        (kind == FFM_LOAD || (kind == FFM_LOAD_UNIFORM_BLACKWELL) == (architecture >= FFM_BLACKWELL)))
        return of_load(word);
    if (ffm_restores_barrier(word) || holds(others, sizeof others / sizeof *others, kind))
        return nothing;
    if (holds(arithmetic, sizeof arithmetic / sizeof *arithmetic, base))
        return of_arithmetic(architecture, word);
    return everything;
}
