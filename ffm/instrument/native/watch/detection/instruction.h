/* How many bytes of memory an x86-64 instruction touches at most. A fault shows where an access starts, but not where
 * it ends. */
#ifndef FFM_INSTRUCTION_H
#define FFM_INSTRUCTION_H

#include <stdint.h>

/* Bytes of the longest instruction, and how many are read at most: a form that the CPU refuses may seem longer. */
enum { FFM_INSTRUCTION_LONGEST = 15, FFM_INSTRUCTION_ROOM = 20 };

/* Bytes of the widest memory operand of the instruction at `code`: exact for moves, arithmetic and comparisons with
 * general, x87, SSE and AVX registers, otherwise an upper limit. Source: Intel 64 and IA-32 Architectures Software
 * Developer's Manual, volume 2, chapter 2 and appendix A. */
uint32_t ffm_instruction_bytes(const uint8_t *code);

#endif
