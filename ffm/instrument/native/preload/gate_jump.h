/* Jumps that the gate and the agent put into code while other threads may be running it. */
#ifndef FFM_GATE_JUMP_H
#define FFM_GATE_JUMP_H

#include <stdbool.h>
#include <stdint.h>

#include "code_changes.h"

/* ffm_jump_put, for the agent as well. */
void ffm_gate_jump(uint8_t *start, const uint8_t *target);

/* Make the code at `start` writable for a jump, or no longer. It stays executable, because other functions on the page
 * are in use. */
bool ffm_gate_jump_writable(uint8_t *start, bool writable);

#endif
