/* What a new stack is: where its frames are, its key, and what the recording says of it. All under the caller's lock,
 * unless stated otherwise. */
#ifndef FFM_DESCRIBED_STACKS_H
#define FFM_DESCRIBED_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "interned.h"

/* Find the places of a stack's frames, of its return addresses and of its Python frames. Sets `key`, which is the same
 * in every run. */
void ffm_stack_describe(const ffm_captured_stack *captured, uint8_t *key);

/* Record the stack that was described last, and set its chains. False if memory is short. */
bool ffm_stack_record(ffm_interned *stack, const uint64_t *words, bool truncated);

/* How many frames were recorded in chains; without the lock. */
uint32_t ffm_stack_frames_recorded(void);

/* The `room` innermost frames of a recorded stack; returns how many there are. Without the lock. */
uint32_t ffm_stack_frames_of(const ffm_interned *stack, uint64_t *frames, uint32_t room);

/* In a forked child: record all anew. */
void ffm_described_after_fork(void);

#endif
