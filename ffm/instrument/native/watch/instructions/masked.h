/* Which bytes of its operand a vector instruction with a mask touches. */
#ifndef FFM_MASKED_H
#define FFM_MASKED_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* The lanes of an instruction with a register of masks (EVEX). */
typedef struct {
    uint8_t number, count; /* of the register, 1 to 7, and of its lanes */
    uint8_t lane;          /* bytes */
    bool packed;           /* those that are selected follow each other in memory */
} ffm_mask;

/* False, with `found` unchanged, as below. */
bool ffm_mask_of(const uint8_t *code, ffm_mask *found);

/* `code` is a copy of the next instruction of `context` (FFM_INSTRUCTION_ROOM bytes). Sets `start` and `end` to the
 * bytes from the first to the last lane that its mask selects. False, and both unchanged, for instructions without a
 * mask, for gathers, scatters and rare instructions, and if the mask selects nothing or is not in the context. Safe in
 * signal handlers. Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, 2.7 (EVEX), and
 * volume 1, 13.4 (the state). */
bool ffm_masked_bytes(const uint8_t *code, const ucontext_t *context, uint64_t *start, uint64_t *end);

#endif
