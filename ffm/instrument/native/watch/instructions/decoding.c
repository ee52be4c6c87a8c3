#include "decoding.h"

#include <asm/sigcontext.h>
#include <string.h>

/* Volume 1, 13.4: the first word of the header after the legacy region. The kernel indicates that the header exists in
 * the unused part of that region (asm/sigcontext.h, struct _fpx_sw_bytes). */
enum { SSE_STATE = 2, XSTATE_HEADER = 512, XSTATE_MAGIC = 464 };

const uint8_t ffm_general_registers[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                           REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};

typedef struct {
    const uint8_t *code;
    const greg_t *general;
    uint8_t prefix; /* 66, F2 or F3 */
    bool locked;
    uint8_t rex;
    uint8_t reg; /* of ModRM, extended by its REX bit */
    uint32_t constant_bytes;
    int64_t displacement;
    uint64_t address;
    bool relative; /* relative to the next instruction */
} decoding;

static int64_t take(const uint8_t **code, uint32_t bytes)
{
    int8_t one;
    int16_t two;
    int32_t four;
    const uint8_t *at = *code;
    *code += bytes;
    switch (bytes) {
    case 1:
        memcpy(&one, at, sizeof one);
        return one;
    case 2:
        memcpy(&two, at, sizeof two);
        return two;
    case 4:
        memcpy(&four, at, sizeof four);
        return four;
    default:
        return 0;
    }
}

/* ModRM, SIB and displacement. False for an operand in a register. */
static bool operand(decoding *of)
{
    const uint8_t modrm = *of->code++, mod = modrm >> 6, rm = modrm & 7;
    of->reg = (uint8_t)((modrm >> 3 & 7) | (of->rex & 4) << 1);
    if (mod == 3)
        return false;
    uint32_t displacement = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    uint64_t address = 0;
    if (rm == 4) {
        const uint8_t sib = *of->code++, base = sib & 7, index = (uint8_t)((sib >> 3 & 7) | (of->rex & 2) << 2);
        if (base == 5 && mod == 0)
            displacement = 4;
        else
            address = (uint64_t)of->general[ffm_general_registers[base | (of->rex & 1) << 3]];
        if (index != 4)
            address += (uint64_t)of->general[ffm_general_registers[index]] << (sib >> 6);
    } else if (rm == 5 && mod == 0) {
        displacement = 4;
        of->relative = true;
    } else {
        address = (uint64_t)of->general[ffm_general_registers[rm | (of->rex & 1) << 3]];
    }
    of->address = address + (uint64_t)take(&of->code, displacement);
    return true;
}

static void use_register(const decoding *of, uint32_t bytes, ffm_decoded *found)
{
    found->width = bytes;
    found->number = of->reg;
    found->high = bytes == 1 && of->rex == 0 && of->reg >= 4;
    if (found->high)
        found->number = (uint8_t)(of->reg - 4);
}

/* The eight operations of memory and a register. */
static bool arithmetic(uint8_t opcode, uint32_t bytes, const decoding *of, ffm_decoded *found)
{
    found->kind = FFM_OPERAND_COMPUTE;
    found->code = opcode >> 3;
    found->to_register = opcode & 2;
    use_register(of, bytes, found);
    return found->code != 2 && found->code != 3; /* those that use the carry as input */
}

static bool exchanging(uint8_t code, uint32_t bytes, const decoding *of, ffm_decoded *found)
{
    found->kind = FFM_OPERAND_COMPUTE;
    found->code = code;
    found->bytes = bytes;
    found->is_locked = code == FFM_ARITHMETIC_EXCHANGE; /* with or without the prefix */
    use_register(of, bytes, found);
    return of->prefix == 0 || of->prefix == 0x66;
}

/* Opcodes of one byte; the operand is decoded. */
static bool one_byte(uint8_t opcode, decoding *of, ffm_decoded *found)
{
    const uint32_t full = of->rex & 8 ? 8 : of->prefix == 0x66 ? 2 : 4;
    const uint32_t bytes = opcode & 1 ? full : 1;
    found->bytes = bytes;
    if (of->prefix != 0 && of->prefix != 0x66)
        return false;
    if (opcode < 0x40 && (opcode & 7) < 4)
        return arithmetic(opcode, bytes, of, found);
    switch (opcode) {
    case 0x63:
        found->kind = FFM_OPERAND_LOAD;
        found->bytes = 4;
        found->is_signed = true;
        use_register(of, full, found);
        return full == 8;
    case 0x80:
    case 0x81:
    case 0x83:
        found->kind = FFM_OPERAND_COMPUTE;
        found->code = of->reg & 7;
        found->is_constant = true;
        of->constant_bytes = opcode == 0x81 ? (full == 2 ? 2 : 4) : 1;
        return found->code != 2 && found->code != 3;
    case 0x84:
    case 0x85:
        found->kind = FFM_OPERAND_COMPUTE;
        found->code = FFM_ARITHMETIC_TEST;
        use_register(of, bytes, found);
        return true;
    case 0x86:
    case 0x87:
        return exchanging(FFM_ARITHMETIC_EXCHANGE, bytes, of, found);
    case 0x88:
    case 0x89:
        found->kind = FFM_OPERAND_STORE;
        use_register(of, bytes, found);
        return true;
    case 0x8A:
    case 0x8B:
        found->kind = FFM_OPERAND_LOAD;
        use_register(of, bytes, found);
        return true;
    case 0xC6:
    case 0xC7:
        found->kind = FFM_OPERAND_STORE;
        found->is_constant = true;
        of->constant_bytes = bytes == 8 ? 4 : bytes;
        return (of->reg & 7) == 0;
    case 0xFE:
    case 0xFF:
        found->kind = FFM_OPERAND_COMPUTE;
        found->code = of->reg & 7 ? FFM_ARITHMETIC_DECREMENT : FFM_ARITHMETIC_INCREMENT;
        found->is_constant = true;
        found->constant = 1;
        return (of->reg & 7) < 2;
    default:
        return false;
    }
}

static bool vector(const decoding *of, bool load, uint32_t bytes, ffm_decoded *found)
{
    found->kind = load ? FFM_OPERAND_VECTOR_LOAD : FFM_OPERAND_VECTOR_STORE;
    found->bytes = bytes;
    found->number = of->reg;
    return true;
}

/* An operation on one or several singles or doubles, as the prefix says. */
static bool floating(uint8_t opcode, const decoding *of, ffm_decoded *found)
{
    found->kind = FFM_OPERAND_VECTOR_COMPUTE;
    found->code = opcode;
    found->number = of->reg;
    found->doubles = of->prefix == 0x66 || of->prefix == 0xF2;
    found->packed = of->prefix == 0 || of->prefix == 0x66;
    found->bytes = found->packed ? 16 : found->doubles ? 8 : 4;
    return !found->packed || (of->address % 16 == 0 && !of->relative);
}

/* The same, but only the lowest are compared. */
static bool comparing(uint8_t opcode, const decoding *of, ffm_decoded *found)
{
    floating(opcode, of, found);
    found->packed = false;
    found->bytes = found->doubles ? 8 : 4;
    return of->prefix == 0 || of->prefix == 0x66;
}

/* Opcodes after 0F. */
static bool two_bytes(uint8_t opcode, const decoding *of, ffm_decoded *found)
{
    const uint32_t full = of->rex & 8 ? 8 : of->prefix == 0x66 ? 2 : 4;
    switch (opcode) {
    case 0x10:
    case 0x11:
        return vector(of, opcode == 0x10, of->prefix == 0xF3 ? 4 : of->prefix == 0xF2 ? 8 : 16, found);
    case 0x2E:
    case 0x2F:
        return comparing(opcode, of, found);
    case 0x51:
    case 0x58:
    case 0x59:
    case 0x5C:
    case 0x5D:
    case 0x5E:
    case 0x5F:
        return floating(opcode, of, found);
    case 0xB0:
    case 0xB1:
        return exchanging(FFM_ARITHMETIC_COMPARE_EXCHANGE, opcode & 1 ? full : 1, of, found);
    case 0xC0:
    case 0xC1:
        return exchanging(FFM_ARITHMETIC_EXCHANGE_ADD, opcode & 1 ? full : 1, of, found);
    case 0x28:
    case 0x29:
        return vector(of, opcode == 0x28, 16, found) && of->address % 16 == 0 && !of->relative;
    case 0x6F:
    case 0x7F:
        return vector(of, opcode == 0x6F, 16, found) &&
               (of->prefix == 0xF3 || (of->prefix == 0x66 && !of->relative && of->address % 16 == 0));
    case 0x7E:
        return of->prefix == 0xF3 && vector(of, true, 8, found);
    case 0xD6:
        return of->prefix == 0x66 && vector(of, false, 8, found);
    case 0xB6:
    case 0xB7:
    case 0xBE:
    case 0xBF:
        found->kind = FFM_OPERAND_LOAD;
        found->bytes = opcode & 1 ? 2 : 1;
        found->is_signed = opcode & 8;
        use_register(of, full, found);
        found->high = false;
        return of->prefix == 0 || of->prefix == 0x66;
    default:
        return false;
    }
}

/* Opcodes of which some forms are emulated. All are followed by ModRM; for other opcodes no more code is read. */
static bool known(bool behind_0f, uint8_t opcode)
{
    static const uint8_t one[] = {0x63, 0x80, 0x81, 0x83, 0x84, 0x85, 0x86, 0x87,
                                  0x88, 0x89, 0x8A, 0x8B, 0xC6, 0xC7, 0xFE, 0xFF};
    static const uint8_t two[] = {0x10, 0x11, 0x28, 0x29, 0x2E, 0x2F, 0x51, 0x58, 0x59, 0x5C, 0x5D, 0x5E, 0x5F,
                                  0x6F, 0x7E, 0x7F, 0xB0, 0xB1, 0xB6, 0xB7, 0xBE, 0xBF, 0xC0, 0xC1, 0xD6};
    if (!behind_0f && opcode < 0x40)
        return (opcode & 7) < 4;
    return memchr(behind_0f ? two : one, opcode, behind_0f ? sizeof two : sizeof one) != NULL;
}

/* Whether the context contains the lower halves of vector registers, and they are in use; and whether operations on
 * them raise no signals, if that matters. */
static bool has_vectors(const ucontext_t *context, bool computes)
{
    enum { ALL_MASKED = 0x1F80 };
    const char *state = (const char *)context->uc_mcontext.fpregs;
    uint32_t magic;
    uint64_t in_use;
    if (state == NULL)
        return false;
    memcpy(&magic, state + XSTATE_MAGIC, sizeof magic);
    memcpy(&in_use, state + XSTATE_HEADER, sizeof in_use);
    return magic == FP_XSTATE_MAGIC1 && (in_use & SSE_STATE) != 0 &&
           (!computes || (context->uc_mcontext.fpregs->mxcsr & ALL_MASKED) == ALL_MASKED);
}

bool ffm_decode(const ucontext_t *context, ffm_decoded *found)
{
    const uint8_t *start = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];
    decoding of = {.code = start, .general = context->uc_mcontext.gregs};
    *found = (ffm_decoded){0};
    for (bool more = true; more; of.code += more) {
        if (*of.code == 0xF0 && !of.locked)
            of.locked = true;
        else if ((*of.code == 0x66 || *of.code == 0xF2 || *of.code == 0xF3) && of.prefix == 0)
            of.prefix = *of.code;
        else
            more = false;
    }
    if ((*of.code & 0xF0) == 0x40)
        of.rex = *of.code++;
    const bool behind_0f = *of.code == 0x0F;
    const uint8_t opcode = behind_0f ? of.code[1] : of.code[0];
    of.code += behind_0f ? 2 : 1;
    if (!known(behind_0f, opcode) || !operand(&of) ||
        !(behind_0f ? two_bytes(opcode, &of, found) : one_byte(opcode, &of, found)))
        return false;
    if (of.constant_bytes != 0)
        found->constant = (uint64_t)take(&of.code, of.constant_bytes);
    found->length = (uint32_t)(of.code - start);
    found->address = of.address + (of.relative ? (uint64_t)of.code : 0);
    if (of.locked) {
        const bool changes = found->kind == FFM_OPERAND_COMPUTE && !found->to_register &&
                             found->code != FFM_ARITHMETIC_COMPARE && found->code != FFM_ARITHMETIC_TEST;
        found->is_locked = true;
        return changes; /* others must not be */
    }
    const bool vectors = found->kind == FFM_OPERAND_VECTOR_LOAD || found->kind == FFM_OPERAND_VECTOR_STORE ||
                         found->kind == FFM_OPERAND_VECTOR_COMPUTE;
    return !vectors || has_vectors(context, found->kind == FFM_OPERAND_VECTOR_COMPUTE);
}
