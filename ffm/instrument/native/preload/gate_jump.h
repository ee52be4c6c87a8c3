/* Jumps that are put into code while other threads may be running it. */
#ifndef FFM_GATE_JUMP_H
#define FFM_GATE_JUMP_H

#include <stdbool.h>
#include <stdint.h>

enum { FFM_GATE_JUMP_BYTES = 5 };

/* Put a jump to `target` at `start` with a single store, so that other threads see all of it or nothing. Its bytes must
 * be within 16 bytes aligned to 16, and writable. */
void ffm_gate_jump(uint8_t *start, const uint8_t *target);

/* Make the code at `start` writable for a jump, or no longer. It stays executable, because other functions on the page
 * are in use. */
bool ffm_gate_jump_writable(uint8_t *start, bool writable);

/* Whether such a jump can be put there, and reaches its target. */
bool ffm_gate_jump_reaches(const uint8_t *start, const uint8_t *target);

#endif
