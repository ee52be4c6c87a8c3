/* Jumps that are put into code while other threads may run it. */
#ifndef FFM_GATE_JUMP_H
#define FFM_GATE_JUMP_H

#include <stdbool.h>
#include <stdint.h>

enum { FFM_GATE_JUMP_BYTES = 5 };

/* Put a jump to `target` at `start`, in one store: other threads meet all of it or nothing. Its bytes lie within 16 at
 * a multiple of 16, and may be written. */
void ffm_gate_jump(uint8_t *start, const uint8_t *target);

/* Whether such a jump can be put there, and leads so far. */
bool ffm_gate_jump_reaches(const uint8_t *start, const uint8_t *target);

#endif
