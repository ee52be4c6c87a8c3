#include "masked.h"

#include <asm/sigcontext.h>
#include <cpuid.h>
#include <string.h>

#include "decoding.h"

/* The context's state of vectors: what says that it is extended, which parts are in use, and where some of them are.
 * The place of the masks depends on the CPU. */
enum { MAGIC = 464, IN_USE = 512, UPPER_HALVES = 576 };
enum { PART_UPPER_HALVES = 2, PART_MASKS = 5, CPUID_STATE = 0xD };

enum { PREFIX_66 = 1, PREFIX_F3, PREFIX_F2 };

enum { COMPARE_FLOATING = 0xC2 };

typedef struct {
    const uint8_t *code; /* at ModRM, and then behind what was read */
    uint32_t map, prefix, vector, unit;
    uint8_t opcode;
    uint8_t base_bit, index_bit; /* 8 or 0: the fourth bits of the registers' numbers */
    uint8_t mask;                /* the register's number, of k1 to k7, or of a vector */
    bool wide;                   /* W */
    uint32_t lane;               /* bytes; 0 for an instruction that is not known here */
    bool packed;                 /* the lanes that are selected follow each other in memory */
} masked;

static uint32_t by_width(const masked *of, uint32_t narrow)
{
    return of->wide ? 2 * narrow : narrow;
}

/* Of singles, or of doubles. */
static uint32_t floating(const masked *of)
{
    return of->prefix == 0 ? 4 : of->prefix == PREFIX_66 ? 8 : 0;
}

static uint32_t lane_0f(const masked *of)
{
    switch (of->opcode) {
    case 0x6F: /* moves */
    case 0x7F:
        return of->prefix == 0 ? 0 : by_width(of, of->prefix == PREFIX_F2 ? 1 : 4);
    case 0x10:
    case 0x11:
    case 0x28:
    case 0x29:
    case 0x51: /* arithmetic */
    case 0x58:
    case 0x59:
    case 0x5C:
    case 0x5D:
    case 0x5E:
    case 0x5F:
    case COMPARE_FLOATING:
        return floating(of);
    case 0x64: /* comparisons */
    case 0x74:
        return 1;
    case 0x65:
    case 0x75:
        return 2;
    case 0x66:
    case 0x76:
        return 4;
    case 0xDB: /* logic */
    case 0xDF:
    case 0xEB:
    case 0xEF:
        return by_width(of, 4);
    default:
        return 0;
    }
}

static uint32_t lane_0f38(masked *of)
{
    switch (of->opcode) {
    case 0x26: /* tests */
        return by_width(of, 1);
    case 0x27:
        return by_width(of, 4);
    case 0x29: /* comparisons */
    case 0x37:
        return 8;
    case 0x62: /* expand and compress */
    case 0x63:
        of->packed = true;
        return by_width(of, 1);
    case 0x88:
    case 0x89:
    case 0x8A:
    case 0x8B:
        of->packed = true;
        return by_width(of, 4);
    default:
        return 0;
    }
}

static uint32_t lane_0f3a(const masked *of)
{
    switch (of->opcode) {
    case 0x1E: /* comparisons */
    case 0x1F:
        return by_width(of, 4);
    case 0x3E:
    case 0x3F:
        return by_width(of, 1);
    default:
        return 0;
    }
}

/* EVEX, 62 and three bytes; without broadcasts. */
static bool evex(masked *of)
{
    const uint8_t *prefix = of->code + 1;
    const uint32_t length = prefix[2] >> 5 & 3;
    if ((prefix[0] & 8) != 0 || (prefix[1] & 4) == 0 || (prefix[2] & 0x10) != 0 || length == 3)
        return false;
    of->map = prefix[0] & 7;
    of->index_bit = prefix[0] & 0x40 ? 0 : 8;
    of->base_bit = prefix[0] & 0x20 ? 0 : 8;
    of->wide = prefix[1] & 0x80;
    of->prefix = prefix[1] & 3;
    of->vector = 16u << length;
    of->mask = prefix[2] & 7;
    of->opcode = prefix[3];
    of->code += 5;
    of->lane = of->map == 1 ? lane_0f(of) : of->map == 2 ? lane_0f38(of) : of->map == 3 ? lane_0f3a(of) : 0;
    of->unit = of->packed ? of->lane : of->vector;
    return of->mask != 0;
}

bool ffm_mask_of(const uint8_t *code, ffm_mask *found)
{
    masked of = {.code = code};
    if (*code != 0x62 || !evex(&of) || of.lane == 0)
        return false;
    *found = (ffm_mask){
        .number = of.mask, .count = (uint8_t)(of.vector / of.lane), .lane = (uint8_t)of.lane, .packed = of.packed};
    return true;
}

/* VEX, C4 and two bytes: VMASKMOVPS, VPMASKMOVD and the like. */
static bool vex(masked *of)
{
    const uint8_t *prefix = of->code + 1;
    of->map = prefix[0] & 31;
    of->index_bit = prefix[0] & 0x40 ? 0 : 8;
    of->base_bit = prefix[0] & 0x20 ? 0 : 8;
    of->vector = prefix[1] & 4 ? 32 : 16;
    of->mask = ~prefix[1] >> 3 & 15;
    of->opcode = prefix[2];
    of->code += 4;
    of->unit = 1;
    if (of->opcode >= 0x2C && of->opcode <= 0x2F)
        of->lane = of->opcode & 1 ? 8 : 4;
    else if (of->opcode == 0x8C || of->opcode == 0x8E)
        of->lane = prefix[1] & 0x80 ? 8 : 4;
    return of->map == 2 && (prefix[1] & 3) == PREFIX_66;
}

/* The address of the operand. False for one in a register. */
static bool operand(masked *of, const greg_t *general, uint64_t *address)
{
    const uint8_t modrm = *of->code++, mod = modrm >> 6, rm = modrm & 7;
    if (mod == 3)
        return false;
    const bool relative = mod == 0 && rm == 5;
    bool far = mod == 2 || relative;
    uint64_t sum = 0;
    if (rm == 4) {
        const uint8_t sib = *of->code++, base = sib & 7, index = (uint8_t)((sib >> 3 & 7) | of->index_bit);
        far = far || (base == 5 && mod == 0);
        if (base != 5 || mod != 0)
            sum = (uint64_t)general[ffm_general_registers[base | of->base_bit]];
        if (index != 4)
            sum += (uint64_t)general[ffm_general_registers[index]] << (sib >> 6);
    } else if (!relative) {
        sum = (uint64_t)general[ffm_general_registers[rm | of->base_bit]];
    }
    if (far) {
        int32_t displacement;
        memcpy(&displacement, of->code, sizeof displacement);
        of->code += sizeof displacement;
        sum += (uint64_t)(int64_t)displacement;
    } else if (mod == 1) {
        sum += (uint64_t)((int64_t)(int8_t)*of->code++ * (int64_t)of->unit);
    }
    of->code += of->map == 3 || (of->map == 1 && of->opcode == COMPARE_FLOATING); /* a constant */
    *address = sum;
    return true;
}

static uint32_t place_of_masks(void)
{
    static uint32_t known;
    uint32_t place = __atomic_load_n(&known, __ATOMIC_RELAXED), size, features, more;
    if (place == 0) {
        __cpuid_count(CPUID_STATE, PART_MASKS, size, place, features, more);
        __atomic_store_n(&known, place, __ATOMIC_RELAXED);
    }
    return place;
}

/* The context's state of vectors, if it contains this part; NULL otherwise. */
static const char *state_with(const ucontext_t *context, uint32_t part)
{
    const char *state = (const char *)context->uc_mcontext.fpregs;
    uint32_t magic;
    uint64_t in_use;
    if (state == NULL)
        return NULL;
    memcpy(&magic, state + MAGIC, sizeof magic);
    memcpy(&in_use, state + IN_USE, sizeof in_use);
    return magic == FP_XSTATE_MAGIC1 && (in_use >> part & 1) != 0 ? state : NULL;
}

/* A bit for each lane that a register of masks selects. */
static uint64_t selected_by_bits(const masked *of, const ucontext_t *context)
{
    const char *state = state_with(context, PART_MASKS);
    const uint32_t place = place_of_masks(), lanes = of->vector / of->lane;
    uint64_t bits;
    if (state == NULL || place == 0)
        return 0;
    memcpy(&bits, state + place + of->mask * sizeof bits, sizeof bits);
    return lanes == 64 ? bits : bits & ((1ULL << lanes) - 1);
}

/* The same for a vector of masks, by the highest bit of each lane. */
static uint64_t selected_by_vector(const masked *of, const ucontext_t *context)
{
    enum { HALF = 16 };
    const char *state = state_with(context, PART_UPPER_HALVES);
    uint8_t bytes[2 * HALF];
    uint64_t bits = 0;
    if (state == NULL)
        return 0;
    memcpy(bytes, &context->uc_mcontext.fpregs->_xmm[of->mask], HALF);
    memcpy(bytes + HALF, state + UPPER_HALVES + of->mask * HALF, HALF);
    for (uint32_t lane = 0; lane < of->vector / of->lane; lane++)
        bits |= (uint64_t)(bytes[(lane + 1) * of->lane - 1] >> 7) << lane;
    return bits;
}

bool ffm_masked_bytes(const uint8_t *code, const ucontext_t *context, uint64_t *start, uint64_t *end)
{
    masked of = {.code = code};
    uint64_t address;
    const bool by_bits = *code == 0x62;
    if (!(by_bits ? evex(&of) : *code == 0xC4 && vex(&of)) || of.lane == 0)
        return false;
    const bool relative = (*of.code & 0xC7) == 5;
    if (!operand(&of, context->uc_mcontext.gregs, &address))
        return false;
    if (relative)
        address += (uint64_t)context->uc_mcontext.gregs[REG_RIP] + (uint64_t)(of.code - code);
    const uint64_t bits = by_bits ? selected_by_bits(&of, context) : selected_by_vector(&of, context);
    if (bits == 0)
        return false;
    const uint64_t first = of.packed ? 0 : (uint64_t)__builtin_ctzll(bits);
    const uint64_t last = of.packed ? (uint64_t)__builtin_popcountll(bits) : 64 - (uint64_t)__builtin_clzll(bits);
    *start = address + first * of.lane;
    *end = address + last * of.lane;
    return true;
}
