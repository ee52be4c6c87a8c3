/* What the GPU does to host memory, as long as it is under way: the CPU could notice there that a wait was removed. */
#ifndef FFM_REMEDY_EFFECTS_H
#define FFM_REMEDY_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Work that the GPU does on host memory was enqueued; call after it. Streams as ffm_order_stream names them. */
void ffm_effect(uint64_t stream);

/* The same for a transfer, which reads (`source`) or writes just this host memory. */
void ffm_effect_of_transfer(uint64_t stream, uint64_t start, size_t bytes, bool source);

/* Whether the GPU may be working on host memory that the CPU can touch. Asks the driver where need be; what transfers
 * work on is closed until they are done (downloads.h), so that the CPU waits where it touches it, and not before. */
bool ffm_effects_under_way(void);

/* Whether the GPU may be about to write to these bytes of host memory, or to wait for the CPU. */
bool ffm_effects_may_write(uint64_t start, size_t bytes);

/* How many effects there were. */
uint64_t ffm_effects_now(void);

/* For order.c, which holds ffm_lock. Effects on a stream, or (0) on all, are over, up to a number of theirs. */
void ffm_effects_over(uint64_t stream, uint64_t last);

/* A stream is about to be destroyed: it cannot be asked any more. */
void ffm_effects_stream_gone(uint64_t stream);

void ffm_effects_forget(void);

#endif
