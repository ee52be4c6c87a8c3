/* The stacks of Go programs. Go's runtime calls C on another stack than the one on which the goroutine that calls
 * lies, and no unwind table says where that is. */
#ifndef FFM_GOROUTINES_H
#define FFM_GOROUTINES_H

#include <stdbool.h>
#include <stdint.h>

#include "registers.h"

/* Whether this is the return address at which Go's runtime goes back to a goroutine's stack. */
bool ffm_goroutine_waits_at(uint64_t address);

/* Add the frames of the goroutine to a stack of `depth` frames that was captured from the given registers, if it ends
 * where Go's runtime left the goroutine's stack. There is room for `room` frames in all. Returns how many there are
 * then. Only between ffm_unwinding_begin and ffm_unwinding_end. */
uint32_t ffm_goroutine_frames(const ffm_registers *from, uint64_t *frames, uint32_t depth, uint32_t room);

#endif
