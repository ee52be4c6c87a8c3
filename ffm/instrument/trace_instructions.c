/* What instructions access: the operands in memory, the lanes of vectors, and what string instructions imply.
 *
 * Compiled with trace_translator.c, before it. native/watch/detection/trace_operand.h is prepended to this text. */

#define __IBMC__ /* otherwise capstone.h uses a #pragma that CModule's compiler treats as an error */
#include <gum/gumstalker.h>
#include <string.h>

static guint8 number_of(x86_reg name)
{
    switch (name) {
    case X86_REG_RAX:
    case X86_REG_EAX:
        return 0;
    case X86_REG_RCX:
    case X86_REG_ECX:
        return 1;
    case X86_REG_RDX:
    case X86_REG_EDX:
        return 2;
    case X86_REG_RBX:
    case X86_REG_EBX:
        return 3;
    case X86_REG_RSP:
    case X86_REG_ESP:
        return 4;
    case X86_REG_RBP:
    case X86_REG_EBP:
        return 5;
    case X86_REG_RSI:
    case X86_REG_ESI:
        return 6;
    case X86_REG_RDI:
    case X86_REG_EDI:
        return 7;
    case X86_REG_R8:
    case X86_REG_R8D:
        return 8;
    case X86_REG_R9:
    case X86_REG_R9D:
        return 9;
    case X86_REG_R10:
    case X86_REG_R10D:
        return 10;
    case X86_REG_R11:
    case X86_REG_R11D:
        return 11;
    case X86_REG_R12:
    case X86_REG_R12D:
        return 12;
    case X86_REG_R13:
    case X86_REG_R13D:
        return 13;
    case X86_REG_R14:
    case X86_REG_R14D:
        return 14;
    case X86_REG_R15:
    case X86_REG_R15D:
        return 15;
    default:
        return FFM_NO_REGISTER;
    }
}

/* Instructions that only read their first operand. */
static gboolean reads_first(const cs_insn *instruction)
{
    switch (instruction->id) {
    case X86_INS_CALL:
    case X86_INS_LCALL:
    case X86_INS_JMP:
    case X86_INS_LJMP:
    case X86_INS_PUSH:
    case X86_INS_CMP:
    case X86_INS_TEST:
    case X86_INS_BT:
    case X86_INS_MUL:
    case X86_INS_IMUL:
    case X86_INS_DIV:
    case X86_INS_IDIV:
    case X86_INS_FLD:
    case X86_INS_FILD:
    case X86_INS_FBLD:
    case X86_INS_FLDCW:
    case X86_INS_FLDENV:
    case X86_INS_FRSTOR:
    case X86_INS_FADD:
    case X86_INS_FIADD:
    case X86_INS_FMUL:
    case X86_INS_FIMUL:
    case X86_INS_FSUB:
    case X86_INS_FSUBR:
    case X86_INS_FISUB:
    case X86_INS_FISUBR:
    case X86_INS_FDIV:
    case X86_INS_FDIVR:
    case X86_INS_FIDIV:
    case X86_INS_FIDIVR:
    case X86_INS_FCOM:
    case X86_INS_FCOMP:
    case X86_INS_FICOM:
    case X86_INS_FICOMP:
    case X86_INS_LDMXCSR:
    case X86_INS_VLDMXCSR:
    case X86_INS_FXRSTOR:
    case X86_INS_FXRSTOR64:
    case X86_INS_XRSTOR:
    case X86_INS_XRSTOR64:
        return TRUE;
    default:
        return FALSE;
    }
}

/* Capstone 5 mistakes many stores for loads, MOVUPS and VMOVDQU among them, so the role of the first operand is
 * considered as well. Treating an access as both is safe. */
static guint8 access_of(const cs_insn *instruction, guint8 place)
{
    const cs_x86_op *operand = &instruction->detail->x86.operands[place];
    guint8 flags = operand->access & CS_AC_WRITE ? FFM_OPERAND_WRITE : 0;
    if (place == 0 && !reads_first(instruction))
        flags |= FFM_OPERAND_WRITE;
    if (operand->access & CS_AC_READ || flags == 0)
        flags |= FFM_OPERAND_READ;
    return flags;
}

static ffm_operand operand_of(const cs_insn *instruction, guint8 place)
{
    const cs_x86_op *memory = &instruction->detail->x86.operands[place];
    ffm_operand operand = {.base = number_of(memory->mem.base),
                           .index = number_of(memory->mem.index),
                           .scale = (guint8)memory->mem.scale,
                           .flags = access_of(instruction, place),
                           .bytes = memory->size != 0 ? memory->size : 8,
                           .displacement = memory->mem.disp};
    if (memory->mem.base == X86_REG_RIP)
        operand.displacement += instruction->address + instruction->size;
    if (memory->mem.segment == X86_REG_FS)
        operand.flags |= FFM_OPERAND_FS;
    if (memory->mem.segment == X86_REG_GS)
        operand.flags |= FFM_OPERAND_GS;
    if (instruction->detail->x86.addr_size == 4)
        operand.flags |= FFM_OPERAND_NARROW;
    return operand;
}

enum { NO_VECTOR = 255, OF_XMM = 16, OF_YMM = 32 };

/* Number of a vector register of at most 32 bytes. */
static guint8 vector_of(x86_reg name, guint8 *bytes)
{
    if (name >= X86_REG_XMM0 && name <= X86_REG_XMM15) {
        *bytes = OF_XMM;
        return name - X86_REG_XMM0;
    }
    if (name >= X86_REG_YMM0 && name <= X86_REG_YMM15) {
        *bytes = OF_YMM;
        return name - X86_REG_YMM0;
    }
    *bytes = 0;
    return NO_VECTOR;
}

/* Whether only some lanes may be accessed; then sets the bytes of an element, and of its index (0 if it has none). */
static gboolean has_lanes(const cs_insn *instruction, guint8 *element, guint8 *index)
{
    *index = 0;
    switch (instruction->id) {
    case X86_INS_VGATHERDPS:
    case X86_INS_VPGATHERDD:
        *element = *index = 4;
        return TRUE;
    case X86_INS_VGATHERDPD:
    case X86_INS_VPGATHERDQ:
        *element = 8;
        *index = 4;
        return TRUE;
    case X86_INS_VGATHERQPS:
    case X86_INS_VPGATHERQD:
        *element = 4;
        *index = 8;
        return TRUE;
    case X86_INS_VGATHERQPD:
    case X86_INS_VPGATHERQQ:
        *element = *index = 8;
        return TRUE;
    case X86_INS_VMASKMOVPS:
    case X86_INS_VPMASKMOVD:
        *element = 4;
        return TRUE;
    case X86_INS_VMASKMOVPD:
    case X86_INS_VPMASKMOVQ:
        *element = 8;
        return TRUE;
    default:
        return FALSE;
    }
}

/* Bytes of an element, and whether there is a repeat prefix, of MOVS, CMPS, STOS, LODS and SCAS; 0 for all others. */
static guint32 string_instruction(const cs_insn *instruction, guint8 *opcode, gboolean *repeated)
{
    const guint8 *code = instruction->bytes;
    gboolean halved = FALSE, wide = FALSE;
    *repeated = FALSE;
    for (;; code++) {
        if (*code == 0xf2 || *code == 0xf3)
            *repeated = TRUE;
        else if (*code == 0x66)
            halved = TRUE;
        else if (*code != 0x2e && *code != 0x36 && *code != 0x3e && *code != 0x26 && *code != 0x67)
            break;
    }
    if ((*code & 0xf0) == 0x40)
        wide = (*code++ & 8) != 0;
    *opcode = *code & 0xfe;
    if (*opcode != 0xa4 && *opcode != 0xa6 && *opcode != 0xaa && *opcode != 0xac && *opcode != 0xae)
        return 0;
    return (*code & 1) == 0 ? 1 : wide ? 8 : halved ? 2 : 4;
}

/* Instructions with a memory operand that they do not access. */
static gboolean touches_nothing(const cs_insn *instruction)
{
    switch (instruction->id) {
    case X86_INS_LEA:
    case X86_INS_NOP:
    case X86_INS_PREFETCH:
    case X86_INS_PREFETCHNTA:
    case X86_INS_PREFETCHT0:
    case X86_INS_PREFETCHT1:
    case X86_INS_PREFETCHT2:
    case X86_INS_PREFETCHW:
    case X86_INS_CLFLUSH:
    case X86_INS_CLFLUSHOPT:
    case X86_INS_CLWB:
        return TRUE;
    default:
        return FALSE;
    }
}

/* Whether it may access more memory than its operand says: a bit or a byte by a number in a register, or the state of
 * the floating-point unit, of which Capstone tells the first bytes. The dynamic linker saves that on the stack, where
 * nothing is watched. */
static gboolean reaches_further(const cs_insn *instruction)
{
    const cs_x86 *detail = &instruction->detail->x86;
    switch (instruction->id) {
    case X86_INS_FNSAVE:
    case X86_INS_FRSTOR:
    case X86_INS_FXSAVE:
    case X86_INS_FXSAVE64:
    case X86_INS_FXRSTOR:
    case X86_INS_FXRSTOR64:
    case X86_INS_XSAVE:
    case X86_INS_XSAVE64:
    case X86_INS_XSAVEC:
    case X86_INS_XSAVEC64:
    case X86_INS_XSAVEOPT:
    case X86_INS_XSAVEOPT64:
    case X86_INS_XRSTOR:
    case X86_INS_XRSTOR64:
        return detail->operands[0].mem.base != X86_REG_RSP;
    case X86_INS_BT:
    case X86_INS_BTC:
    case X86_INS_BTR:
    case X86_INS_BTS:
        return detail->operands[0].type == X86_OP_MEM && detail->operands[1].type == X86_OP_REG;
    case X86_INS_XLATB:
        return TRUE;
    default:
        return FALSE;
    }
}

/* Whether it stores to memory that is not among its operands, and where. */
static gboolean implied_store(const cs_insn *instruction, ffm_operand *store)
{
    enum { RAX = 0, RDI = 7, LINE = 64 };
    const cs_x86 *detail = &instruction->detail->x86;
    memset(store, 0, sizeof *store);
    store->index = FFM_NO_REGISTER;
    store->scale = 1;
    store->flags = FFM_OPERAND_WRITE | (detail->addr_size == 4 ? FFM_OPERAND_NARROW : 0);
    switch (instruction->id) {
    case X86_INS_MASKMOVQ:
    case X86_INS_MASKMOVDQU:
    case X86_INS_VMASKMOVDQU:
        store->base = RDI;
        store->bytes = OF_XMM;
        return TRUE;
    case X86_INS_MOVDIR64B:
        store->base = number_of(detail->operands[0].reg);
        store->bytes = LINE;
        return TRUE;
    case X86_INS_CLZERO: /* somewhere here is the line that contains the address */
        store->base = RAX;
        store->displacement = 1 - LINE;
        store->bytes = 2 * LINE - 1;
        return TRUE;
    default:
        return FALSE;
    }
}

/* Stalker's own code clears the upper halves of these: the program would compute with wrong values. It keeps those of
 * the others, which the C library's copies use. */
static gboolean loses_halves(const cs_insn *instruction)
{
    const cs_x86 *detail = &instruction->detail->x86;
    for (guint8 i = 0; i < detail->op_count; i++)
        if (detail->operands[i].type == X86_OP_REG && detail->operands[i].reg >= X86_REG_ZMM0 &&
            detail->operands[i].reg <= X86_REG_ZMM15)
            return TRUE;
    return FALSE;
}

/* Jumps, calls and returns, after which a block ends. */
static gboolean continues_elsewhere(const cs_insn *instruction)
{
    const cs_detail *detail = instruction->detail;
    for (guint8 i = 0; i < detail->groups_count; i++)
        if (detail->groups[i] == CS_GRP_JUMP || detail->groups[i] == CS_GRP_CALL || detail->groups[i] == CS_GRP_RET ||
            detail->groups[i] == CS_GRP_INT || detail->groups[i] == CS_GRP_IRET)
            return TRUE;
    return FALSE;
}
