/* What a GPU instruction reads from constant bank 0, where the parameters of kernels are.
 *
 * The encoding is undocumented. It was derived from what NVIDIA's disassembler shows for half of the kernels in some
 * libraries, and compared with what it shows for the other half. An unknown instruction may read everything. */
#ifndef FFM_MACHINE_INSTRUCTION_H
#define FFM_MACHINE_INSTRUCTION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool all;              /* any byte of the bank, or a branch to code of the program elsewhere */
    bool indexed;          /* a register says how far behind the place that the instruction names */
    bool other;            /* it reads another bank, where addresses of variables may be */
    uint32_t begin, bytes; /* otherwise these; no bytes if it reads none */
} ffm_bank_read;

/* Where parameters begin in the bank on an architecture, such as 90 (10 * major + minor); 0 if its code is not
 * known. */
uint32_t ffm_parameters_begin(uint32_t architecture);

/* Whether a read from this place, before the parameters, cannot yield the address of the bank itself, with which code
 * could read parameters from memory. */
bool ffm_harmless_before_parameters(uint32_t architecture, uint32_t place);

/* Where a branch or a call leads to, or where threads that part at an instruction meet and go on. `offset` is the
 * instruction's in code of `bytes` bytes. Negative if the target is no instruction of this code. */
int64_t ffm_branch_target(uint32_t architecture, const uint64_t word[2], uint64_t offset, uint64_t bytes);
int64_t ffm_meeting_target(const uint64_t word[2], uint64_t offset, uint64_t bytes);

/* What the instruction at an offset in code of `bytes` bytes reads. */
ffm_bank_read ffm_instruction_reads(uint32_t architecture, const uint64_t word[2], uint64_t offset, uint64_t bytes);

#endif
