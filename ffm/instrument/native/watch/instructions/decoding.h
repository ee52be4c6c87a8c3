/* What common loads, stores and arithmetic do with their memory operand. */
#ifndef FFM_DECODING_H
#define FFM_DECODING_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* What an instruction does with its memory operand. */
typedef enum {
    FFM_OPERAND_LOAD,    /* a general register is loaded with zero- or sign-extended memory */
    FFM_OPERAND_STORE,   /* memory is written from a general register or a constant */
    FFM_OPERAND_COMPUTE, /* both are operands of an operation that sets flags */
    FFM_OPERAND_VECTOR_LOAD,
    FFM_OPERAND_VECTOR_STORE,
    FFM_OPERAND_VECTOR_COMPUTE /* a vector register and memory are operands of an operation on floating-point numbers */
} ffm_operand_use;

/* The first eight are numbered as in opcodes; 2 and 3, which use the carry as input, are left out. */
typedef enum {
    FFM_ARITHMETIC_ADD,
    FFM_ARITHMETIC_OR,
    FFM_ARITHMETIC_AND = 4,
    FFM_ARITHMETIC_SUBTRACT,
    FFM_ARITHMETIC_EXCLUSIVE_OR,
    FFM_ARITHMETIC_COMPARE,
    FFM_ARITHMETIC_TEST,
    FFM_ARITHMETIC_INCREMENT,
    FFM_ARITHMETIC_DECREMENT,
    FFM_ARITHMETIC_EXCHANGE,
    FFM_ARITHMETIC_EXCHANGE_ADD,
    FFM_ARITHMETIC_COMPARE_EXCHANGE
} ffm_arithmetic;

typedef struct {
    ffm_operand_use kind;
    uint64_t address;
    uint32_t bytes;   /* of memory */
    uint32_t length;  /* of the instruction */
    uint32_t width;   /* bytes of the register */
    uint8_t number;   /* of the register, in its encoding */
    uint8_t code;     /* of the operation: one of `ffm_arithmetic`, or the opcode of an operation on vectors */
    bool is_locked;   /* no other processor writes the memory meanwhile */
    bool is_constant; /* the other operand is `constant` */
    bool high;        /* the register is AH, CH, DH or BH */
    bool to_register; /* for an operation: its result goes to the register, not to memory */
    bool is_signed;
    bool packed, doubles; /* of floating-point numbers: several, and of 8 bytes */
    uint64_t constant;
} ffm_decoded;

/* Where a context keeps the general registers, by their numbers in encodings. */
extern const uint8_t ffm_general_registers[16];

/* Whether the next instruction of a context is one that is emulated (emulation.h). Safe in signal handlers. Source:
 * Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. */
bool ffm_decode(const ucontext_t *context, ffm_decoded *found);

#endif
