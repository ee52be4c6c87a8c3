/* Executes common loads, stores and arithmetic in place of the CPU, for an instruction that faulted, so that its page
 * need not stay open until the CPU has returned to the program and trapped again. Safe in signal handlers. */
#ifndef FFM_EMULATION_H
#define FFM_EMULATION_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* What an instruction does with its memory operand. */
typedef enum {
    FFM_EMULATE_LOAD,    /* a general register is loaded with zero- or sign-extended memory */
    FFM_EMULATE_STORE,   /* memory is written from a general register or a constant */
    FFM_EMULATE_COMPUTE, /* both are operands of an operation that sets flags */
    FFM_EMULATE_VECTOR_LOAD,
    FFM_EMULATE_VECTOR_STORE,
    FFM_EMULATE_VECTOR_COMPUTE /* a vector register and memory are operands of an operation on floating-point numbers */
} ffm_emulation_kind;

typedef struct {
    ffm_emulation_kind kind;
    uint64_t address;
    uint32_t bytes;  /* of memory */
    uint32_t length; /* of the instruction */
    uint32_t width;  /* bytes of the register */
    uint8_t number;  /* of the register, in its encoding */
    uint8_t code;   /* of the operation: 0 add, 1 or, 4 and, 5 sub, 6 xor, 7 compare; 8 test, 9 increment, 10 decrement,
                       11 exchange, 12 exchange and add, 13 compare and exchange. On vectors, its opcode */
    bool is_locked; /* no other processor writes the memory meanwhile */
    bool is_constant; /* the other operand is `constant` */
    bool high;        /* the register is AH, CH, DH or BH */
    bool to_register; /* for an operation: its result goes to the register, not to memory */
    bool is_signed;
    bool packed, doubles; /* of floating-point numbers: several, and of 8 bytes */
    uint64_t constant;
} ffm_emulation;

/* Whether the next instruction of a context is one of those. Source: Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2. */
bool ffm_emulation_of(const ucontext_t *context, ffm_emulation *found);

/* Execute it: its memory is accessible now. The context then points after the instruction. */
void ffm_emulation_execute(const ffm_emulation *emulation, ucontext_t *context);

#endif
