/* The memory that an x86-64 instruction touches at most. A fault shows where one access starts, but not where it ends,
 * nor where else the instruction accesses memory. */
#ifndef FFM_INSTRUCTION_H
#define FFM_INSTRUCTION_H

#include <stdint.h>

/* Bytes of the longest instruction, and how many are read at most: a form that the CPU refuses may seem longer. */
enum { FFM_INSTRUCTION_LONGEST = 15, FFM_INSTRUCTION_ROOM = 20 };

/* Bytes of the widest memory operand of the instruction at `code`: exact for moves, arithmetic and comparisons with
 * general, x87, SSE and AVX registers, otherwise an upper limit. Source: Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2, chapter 2 and appendix A. */
uint32_t ffm_instruction_bytes(const uint8_t *code);

/* How many places of memory an instruction touches, besides the stack. */
typedef enum {
    FFM_PLACES_ONE,
    FFM_PLACES_COPY,    /* it reads at RSI and writes at RDI */
    FFM_PLACES_COMPARE, /* it reads at both */
    FFM_PLACES_MANY     /* the lanes of a gather or a scatter, the parts of a saved state, and others that are rare */
} ffm_places;

ffm_places ffm_instruction_places(const uint8_t *code);

#endif
