#include "call_sites.h"

#include <stddef.h>
#include <string.h>

#include "code_changes.h"
#include "guarded.h"

/* How far code is looked at before the call, and one byte before that. */
enum { LOOKED_AT = 24 };

enum { WIDE = 8, EXTENDS_REG = 4, EXTENDS_BASE = 1, REX = 0x40 }; /* the prefix REX, and its bits */
enum { RAX = 0, RCX = 1, RSP = 4, RBP = 5, R11 = 11 };
enum { IN_REGISTER = 3, WITH_SIB = 4, RELATIVE = 5, STACK_SIB = 0x24 };

static const uint8_t system_call[FFM_CALL_BYTES] = {0x0F, 0x05};

static const int registers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

typedef enum { CONSTANT, OTHER_REGISTER, MEMORY } origin;

/* A move to a general register. */
typedef struct {
    uint32_t bytes;
    uint8_t to, from;
    origin origin;
    bool wide, relative;
    uint64_t value, address; /* the constant; where the memory is, or the distance to it */
} move;

static uint64_t signed_word(const uint8_t *code, uint32_t bytes)
{
    int8_t one;
    int32_t four;
    if (bytes == 0)
        return 0;
    if (bytes == sizeof one) {
        memcpy(&one, code, sizeof one);
        return (uint64_t)(int64_t)one;
    }
    memcpy(&four, code, sizeof four);
    return (uint64_t)(int64_t)four;
}

/* A register from memory, at a distance to the next instruction or to the stack pointer. */
static bool is_load(const uint8_t *code, uint32_t room, const ucontext_t *context, move *found)
{
    const uint8_t mod = code[0] >> 6, rm = code[0] & 7;
    const uint32_t distance = mod == 0 && rm == WITH_SIB ? 0 : mod == 1 ? 1 : 4, before = rm == WITH_SIB ? 2 : 1;
    found->relative = mod == 0 && rm == RELATIVE;
    if (!(found->relative || (rm == WITH_SIB && room >= before && code[1] == STACK_SIB)) || room < before + distance)
        return false;
    found->origin = MEMORY;
    found->address =
        signed_word(code + before, distance) + (found->relative ? 0 : (uint64_t)context->uc_mcontext.gregs[REG_RSP]);
    found->bytes = before + distance;
    return true;
}

/* The move at the start of code of which so many bytes are left; `bytes` are then its own. */
static bool is_move(const uint8_t *code, uint32_t room, const ucontext_t *context, move *found)
{
    const uint8_t rex = room > 0 && (code[0] & 0xF0) == REX ? code[0] : 0;
    const uint32_t prefixes = rex != 0, opcode_bytes = prefixes + 1;
    *found = (move){.wide = rex & WIDE};
    if (room < opcode_bytes + 1)
        return false;
    const uint8_t opcode = code[prefixes], *operands = code + opcode_bytes;
    const uint8_t reg = (uint8_t)((operands[0] >> 3 & 7) | (rex & EXTENDS_REG) << 1);
    const uint8_t rm = (uint8_t)((operands[0] & 7) | (rex & EXTENDS_BASE) << 3);
    const bool between_registers = operands[0] >> 6 == IN_REGISTER;
    room -= opcode_bytes;
    if ((opcode & 0xF8) == 0xB8 && !found->wide && room >= 4) { /* MOV r32, imm32 */
        found->to = (uint8_t)((opcode & 7) | (rex & EXTENDS_BASE) << 3);
        found->value = (uint32_t)signed_word(operands, 4);
        found->bytes = 4;
    } else if (opcode == 0xC7 && between_registers && (operands[0] >> 3 & 7) == 0 && room >= 5) { /* MOV r, imm32 */
        found->to = rm;
        found->value = signed_word(operands + 1, 4);
        found->bytes = 5;
    } else if (opcode == 0x89 && between_registers) { /* MOV r, r */
        found->origin = OTHER_REGISTER;
        found->to = rm;
        found->from = reg;
        found->bytes = 1;
    } else if (opcode == 0x8B && between_registers) {
        found->origin = OTHER_REGISTER;
        found->to = reg;
        found->from = rm;
        found->bytes = 1;
    } else if ((opcode == 0x31 || opcode == 0x33) && between_registers && reg == rm) { /* XOR r, r */
        found->to = reg;
        found->bytes = 1;
    } else if (opcode == 0x8B && !(rex & ~(REX | WIDE | EXTENDS_REG)) && is_load(operands, room, context, found)) {
        found->to = reg;
    } else {
        return false;
    }
    found->bytes += opcode_bytes;
    return true;
}

/* Whether the register holds what the move to it, which ends at an address, has left there. */
static bool was_made(const move *made, uint64_t end, const ucontext_t *context)
{
    const greg_t *general = context->uc_mcontext.gregs;
    uint64_t value = made->value;
    if (made->origin == OTHER_REGISTER)
        value = (uint64_t)general[registers[made->from]];
    else if (made->origin == MEMORY && !ffm_guarded_read(&value, made->address + (made->relative ? end : 0),
                                                         made->wide ? sizeof(uint64_t) : sizeof(uint32_t)))
        return false;
    return (uint64_t)general[registers[made->to]] == (made->wide ? value : (uint32_t)value);
}

/* What the kernel or a place changes (quick_places.h) cannot be read once more. */
static bool may_be_read(uint8_t number)
{
    return number != RAX && number != RCX && number != R11;
}

static bool may_be_set(uint8_t number)
{
    return number != RCX && number != R11 && number != RSP;
}

static void put(ffm_call_site *site, const void *code, uint32_t bytes)
{
    memcpy(site->code + site->bytes, code, bytes);
    site->bytes += bytes;
}

/* Add a copy of a move, or one that loads from the same place with its whole address. */
static bool copy(ffm_call_site *site, const uint8_t *code, const move *made, uint64_t end)
{
    enum { BY_ADDRESS = 13 };
    const uint8_t low = made->to & 7, high = made->to >> 3;
    if (site->bytes + (made->relative ? BY_ADDRESS : made->bytes) > sizeof site->code)
        return false;
    if (!made->relative) {
        put(site, code, made->bytes);
        return true;
    }
    const uint64_t address = made->address + end;
    const uint8_t load_address[] = {(uint8_t)(REX | WIDE | high), (uint8_t)(0xB8 | low)};
    const uint8_t load[] = {(uint8_t)(REX | (made->wide ? WIDE : 0) | high * (EXTENDS_REG | EXTENDS_BASE)), 0x8B,
                            (uint8_t)(low << 3 | low)};
    put(site, load_address, sizeof load_address);
    put(site, &address, sizeof address);
    put(site, load, sizeof load);
    return low != RSP && low != RBP; /* these need a longer form */
}

/* Whether code that ends at the call consists of such moves alone, the first of which makes room for a jump. */
static bool consists_of_moves(const uint8_t *code, uint32_t bytes, const ucontext_t *context, ffm_call_site *site)
{
    const uint64_t call = (uint64_t)context->uc_mcontext.gregs[REG_RIP] - FFM_CALL_BYTES;
    uint32_t set = 0, read = 0; /* one bit for each register; only what none of the moves has set before */
    site->bytes = 0;
    for (uint32_t at = 0; at < bytes;) {
        move made;
        if (!is_move(code + at, bytes - at, context, &made) || (at == 0 && made.bytes < FFM_JUMP_BYTES))
            return false;
        const uint64_t end = call - bytes + at + made.bytes;
        if (!may_be_set(made.to) || (made.origin == OTHER_REGISTER && !may_be_read(made.from)) ||
            !was_made(&made, end, context) || !copy(site, code + at, &made, end))
            return false;
        read |= made.origin == OTHER_REGISTER ? 1U << made.from & ~set : 0;
        set |= 1U << made.to;
        at += made.bytes;
    }
    return (set & read) == 0;
}

/* Whether a byte would change the instruction behind it. */
static bool is_prefix(uint8_t byte)
{
    switch (byte) {
    case 0x0F:
    case 0x26:
    case 0x2E:
    case 0x36:
    case 0x3E:
    case 0x64:
    case 0x65:
    case 0x66:
    case 0x67:
    case 0xF0:
    case 0xF2:
    case 0xF3:
        return true;
    default:
        return (byte & 0xF0) == REX;
    }
}

bool ffm_call_site_find(const ucontext_t *context, ffm_call_site *site)
{
    uint8_t code[1 + LOOKED_AT + FFM_CALL_BYTES];
    const uint64_t behind = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
    if (!ffm_guarded_read(code, behind - sizeof code, sizeof code) ||
        memcmp(code + 1 + LOOKED_AT, system_call, sizeof system_call) != 0)
        return false;
    for (uint32_t bytes = FFM_JUMP_BYTES; bytes <= LOOKED_AT; bytes++) {
        const uint8_t *first = code + 1 + LOOKED_AT - bytes;
        site->start = behind - FFM_CALL_BYTES - bytes;
        if (!is_prefix(first[-1]) && ffm_jump_fits((const uint8_t *)site->start) && // NOLINT(performance-no-int-to-ptr)
            consists_of_moves(first, bytes, context, site))
            return true;
    }
    return false;
}
