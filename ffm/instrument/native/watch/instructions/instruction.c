#include "instruction.h"

#include <stdbool.h>

enum { MOVDIR64B = 0xF8, TILES = 0x4B };
enum { WIDEST = 64, STATE = 4096 /* FXSAVE, XSAVE and the like */ };

typedef enum { NO_PREFIX, OPERAND_66, REPEAT_F3, REPEAT_F2 } mandatory;

/* What precedes an instruction's opcode. */
typedef struct {
    mandatory prefix;
    uint32_t map;    /* 0: one byte; 1: 0F; 2: 0F 38; 3: 0F 3A */
    uint32_t vector; /* bytes of the vector length; 16 if no prefix sets it */
    bool wide;       /* REX.W and its like */
    bool small;      /* 66: operands of 2 bytes */
    bool broadcast;  /* EVEX: one element for all */
    bool encoded;    /* VEX or EVEX */
    bool moved;      /* FS, GS, or addresses of 32 bits */
} form;

static uint32_t general(const form *of)
{
    return of->wide ? 8 : of->small ? 2 : 4;
}

static uint32_t scalar(const form *of, uint32_t packed)
{
    return of->prefix == REPEAT_F3 ? 4 : of->prefix == REPEAT_F2 ? 8 : packed;
}

static uint32_t x87(uint8_t opcode, uint8_t modrm)
{
    uint32_t extension = modrm >> 3 & 7;
    switch (opcode) {
    case 0xD9:
        return extension < 4 ? 4 : extension & 1 ? 2 : 28;
    case 0xDB:
        return extension < 4 ? 4 : 10;
    case 0xDD:
        return extension < 4 ? 8 : extension == 7 ? 2 : 108;
    case 0xDF:
        return extension < 4 ? 2 : extension & 1 ? 8 : 10;
    case 0xDE:
        return 2;
    case 0xDC:
        return 8;
    default:
        return 4;
    }
}

static uint32_t one_byte(const form *of, uint8_t opcode, uint8_t modrm)
{
    if (opcode < 0x40)
        return opcode & 1 ? general(of) : 1;
    if (opcode >= 0xD8 && opcode <= 0xDF)
        return x87(opcode, modrm);
    switch (opcode) {
    case 0x63:
        return 4;
    case 0x8C:
    case 0x8E:
        return 2;
    case 0x69:
    case 0x6B:
        return general(of);
    case 0xC6:
    case 0xFE:
        return 1;
    case 0xC7:
        return general(of);
    case 0xFF: /* increments and decrements; jumps, calls and pushes */
        return (modrm >> 3 & 7) < 2 ? general(of) : 10;
    default:
        break;
    }
    bool sized = (opcode >= 0x80 && opcode <= 0x8B) || (opcode >= 0xA0 && opcode <= 0xA7) ||
                 (opcode >= 0xAA && opcode <= 0xAF) || opcode == 0xC0 || opcode == 0xC1 ||
                 (opcode >= 0xD0 && opcode <= 0xD3) || opcode == 0xF6 || opcode == 0xF7;
    if (sized)
        return opcode & 1 ? general(of) : 1;
    return opcode >= 0x50 && opcode < 0x60 ? 8 : WIDEST;
}

/* Moves, conversions, comparisons and arithmetic of the map 0F that have scalar forms. */
static uint32_t vector_0f(const form *of, uint8_t opcode)
{
    uint32_t full = of->encoded ? of->vector : 16;
    switch (opcode) {
    case 0x10:
    case 0x11:
    case 0xC2:
        return scalar(of, full);
    case 0x12:
        return of->prefix == REPEAT_F2 ? (of->vector == 16 ? 8 : full) : of->prefix == REPEAT_F3 ? full : 8;
    case 0x16:
        return of->prefix == REPEAT_F3 ? full : 8;
    case 0x13:
    case 0x17:
        return 8;
    case 0x2A:
        return of->prefix >= REPEAT_F3 ? (of->wide ? 8 : 4) : 8;
    case 0x2C:
    case 0x2D:
        return scalar(of, of->prefix == OPERAND_66 ? 16 : 8);
    case 0x2E:
    case 0x2F:
        return of->prefix == OPERAND_66 ? 8 : 4;
    case 0x5A: /* to singles from doubles, and back */
        return scalar(of, of->prefix == OPERAND_66 ? full : full / 2);
    case 0x6E:
        return of->wide ? 8 : 4;
    case 0x6F:
    case 0x7F:
        return of->prefix == NO_PREFIX && !of->encoded ? 8 : full;
    case 0x7E:
        return of->prefix == REPEAT_F3 || of->wide ? 8 : 4;
    case 0x5B: /* whole vectors of singles and integers, with any prefix */
        return full;
    case 0xC4:
        return 2;
    case 0xD6:
        return 8;
    case 0xE6: /* to doubles, from integers of 4 bytes or (EVEX.W) of 8 */
        return of->prefix == REPEAT_F3 && !of->wide ? full / 2 : full;
    default:
        break;
    }
    if (opcode >= 0x51 && opcode <= 0x5F)
        return scalar(of, full);
    return full;
}

static uint32_t map_0f(const form *of, uint8_t opcode, uint8_t modrm)
{
    bool vector = of->encoded || (opcode >= 0x10 && opcode <= 0x17) || (opcode >= 0x28 && opcode <= 0x2F) ||
                  (opcode >= 0x50 && opcode <= 0x7F) || opcode == 0xC2 || (opcode >= 0xC4 && opcode <= 0xC6) ||
                  opcode >= 0xD0;
    if (vector)
        return vector_0f(of, opcode);
    if (opcode >= 0x90 && opcode <= 0x9F) /* SETcc */
        return 1;
    switch (opcode) {
    case 0xB0:
    case 0xB6:
    case 0xBE:
    case 0xC0:
        return 1;
    case 0xB7:
    case 0xBF:
        return 2;
    case 0xA3: /* bit tests, double shifts, IMUL, CMPXCHG, XADD, MOVNTI, counts of bits */
    case 0xA4:
    case 0xA5:
    case 0xAB:
    case 0xAC:
    case 0xAD:
    case 0xAF:
    case 0xB1:
    case 0xB3:
    case 0xB8:
    case 0xBA:
    case 0xBB:
    case 0xBC:
    case 0xBD:
    case 0xC1:
    case 0xC3:
        return general(of);
    case 0xC7: /* CMPXCHG8B and CMPXCHG16B; XSAVEC and the like */
        return (modrm >> 3 & 7) == 1 ? (of->wide ? 16 : 8) : STATE;
    case 0xAE: /* LDMXCSR and STMXCSR; FXSAVE, XSAVE and the like */
        return (modrm >> 3 & 6) == 2 ? 4 : STATE;
    default:
        return opcode >= 0x40 && opcode <= 0x4F ? general(of) : WIDEST;
    }
}

static uint32_t map_0f38(const form *of, uint8_t opcode)
{
    if (!of->encoded && (opcode == MOVDIR64B || (opcode >= 0xD8 && opcode <= 0xDF && of->prefix == REPEAT_F3)))
        return WIDEST; /* and those with a key's handle */
    if (!of->encoded)
        return opcode < 0xF0 ? 16 : 8;
    switch (opcode) {
    case 0x49: /* a configuration or a row of tiles, each of which faults for itself */
    case 0x4B:
        return WIDEST;
    case 0x18: /* broadcasts of one element */
    case 0x58:
        return 4;
    case 0x19:
    case 0x59:
        return 8;
    case 0x1A:
    case 0x5A:
        return 16;
    case 0x78:
        return 1;
    case 0x79:
        return 2;
    default: /* including operations on general registers, of at most 8 bytes */
        return opcode >= 0xF0 ? 8 : of->vector;
    }
}

static uint32_t in_map(const form *of, uint8_t opcode, uint8_t modrm)
{
    if (of->broadcast)
        return of->wide ? 8 : 4;
    switch (of->map) {
    case 0:
        return one_byte(of, opcode, modrm);
    case 1:
        return map_0f(of, opcode, modrm);
    case 2:
        return map_0f38(of, opcode);
    case 3:
        return of->encoded ? of->vector : 16;
    default:
        return WIDEST;
    }
}

/* `code` is after the first byte of a VEX or EVEX prefix, C5, C4 or 62. Returns the address of the opcode. */
static const uint8_t *encoded(uint8_t first, const uint8_t *code, form *of)
{
    static const mandatory prefixes[4] = {NO_PREFIX, OPERAND_66, REPEAT_F3, REPEAT_F2};
    of->encoded = true;
    if (first == 0xC5) {
        of->map = 1;
        of->vector = code[0] & 4 ? 32 : 16;
        of->prefix = prefixes[code[0] & 3];
        return code + 1;
    }
    of->map = code[0] & (first == 0xC4 ? 31 : 7);
    of->wide = code[1] & 0x80;
    of->prefix = prefixes[code[1] & 3];
    if (first == 0xC4) {
        of->vector = code[1] & 4 ? 32 : 16;
        return code + 2;
    }
    of->vector = 16u << (code[2] >> 5 & 3);
    of->broadcast = code[2] & 0x10;
    return code + 3;
}

/* `of` holds what lasts without prefixes. Returns the address of the opcode. */
static const uint8_t *opcode_of(const uint8_t *code, form *of)
{
    const uint8_t *last = code + FFM_INSTRUCTION_LONGEST - 1; /* at which the opcode begins at the latest */
    for (bool prefix = true; prefix && code < last; code += prefix) {
        switch (*code) {
        case 0x66:
            of->small = true;
            if (of->prefix == NO_PREFIX)
                of->prefix = OPERAND_66;
            break;
        case 0xF3:
            of->prefix = REPEAT_F3;
            break;
        case 0xF2:
            of->prefix = REPEAT_F2;
            break;
        case 0x64:
        case 0x65:
        case 0x67:
            of->moved = true;
            break;
        case 0xF0:
        case 0x26:
        case 0x2E:
        case 0x36:
        case 0x3E:
            break;
        default:
            prefix = false;
            break;
        }
    }
    if (*code == 0xC4 || *code == 0xC5 || *code == 0x62)
        return encoded(*code, code + 1, of);
    if ((*code & 0xF0) == 0x40)
        of->wide = *code++ & 8;
    if (*code == 0x0F) {
        of->map = code[1] == 0x38 ? 2 : code[1] == 0x3A ? 3 : 1;
        code += of->map == 1 ? 1 : 2;
    }
    return code;
}

uint32_t ffm_instruction_bytes(const uint8_t *code)
{
    form of = {.vector = 16};
    const uint8_t *opcode = opcode_of(code, &of);
    return in_map(&of, opcode[0], opcode[1]);
}

ffm_places ffm_instruction_places(const uint8_t *code)
{
    form of = {.vector = 16};
    const uint8_t *const at = opcode_of(code, &of), opcode = *at;
    if (in_map(&of, opcode, at[1]) > WIDEST) /* in parts, of which any may fault first */
        return FFM_PLACES_MANY;
    if (of.map == 0 && opcode >= 0xA4 && opcode <= 0xA7)
        return of.moved ? FFM_PLACES_MANY : opcode < 0xA6 ? FFM_PLACES_COPY : FFM_PLACES_COMPARE;
    if (of.map != 2)
        return FFM_PLACES_ONE;
    if (!of.encoded)
        return opcode == MOVDIR64B ? FFM_PLACES_MANY : FFM_PLACES_ONE;
    const bool gathers = opcode >= 0x90 && opcode <= 0x93, scatters = opcode >= 0xA0 && opcode <= 0xA3;
    return gathers || scatters || opcode == TILES ? FFM_PLACES_MANY : FFM_PLACES_ONE;
}
