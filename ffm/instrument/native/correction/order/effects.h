/* GPU work in progress on host memory, where the CPU could notice that a wait was removed. */
#ifndef FFM_REMEDY_EFFECTS_H
#define FFM_REMEDY_EFFECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* GPU work on host memory was enqueued; call afterwards. Streams are named as by ffm_order_stream. */
void ffm_effect(uint64_t stream);

/* The same for a transfer, which reads (`source`) or writes only this host memory. */
void ffm_effect_of_transfer(uint64_t stream, uint64_t start, size_t bytes, bool source);

/* Whether the GPU may be working on host memory that the CPU can touch. Queries the driver if necessary. The memory of
 * transfers is closed until they are done (downloads.h), so that the CPU waits when it touches it, and not before. */
bool ffm_effects_under_way(void);

/* Whether the GPU may be about to write these bytes of host memory, or to wait for the CPU. */
bool ffm_effects_may_write(uint64_t start, size_t bytes);

/* Number of effects so far. */
uint64_t ffm_effects_now(void);

/* For order.c, which holds ffm_lock: effects on a stream, or on all (0), are over, up to and including this number. */
void ffm_effects_over(uint64_t stream, uint64_t last);

/* A stream is about to be destroyed: it cannot be queried any more. */
void ffm_effects_stream_gone(uint64_t stream);

void ffm_effects_forget(void);

/* Closes the memory of a transfer that is under way, as ffm_downloads_close_transfer does. */
typedef bool ffm_transfer_closer(uint64_t start, size_t bytes, bool source, uint64_t stream);

void ffm_effects_close_transfers_with(ffm_transfer_closer *closer);

#endif
