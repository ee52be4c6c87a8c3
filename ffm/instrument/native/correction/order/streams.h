/* The streams that ffm knows: those that it saw being created, and the calling thread's own default stream.
 *
 * All functions are called under ffm_lock (state.h), except those that say otherwise. */
#ifndef FFM_REMEDY_STREAMS_H
#define FFM_REMEDY_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver.h"

typedef struct {
    uint64_t handle;
    bool nonblocking;
    ffm_handle event; /* made when first needed */
} ffm_known_stream;

/* The streams that were created and not destroyed, and their number. */
ffm_known_stream *ffm_streams_made(uint32_t *count);

/* NULL if the stream's creation was not seen. */
ffm_known_stream *ffm_streams_find(uint64_t stream);

/* Whether the stream is a default one, or ffm saw its creation. */
bool ffm_streams_know(uint64_t stream);

/* Add a stream that was created. False if there is no room. */
bool ffm_streams_add(uint64_t stream, bool nonblocking);

/* Remove a stream. Its event is kept for the next one. */
void ffm_streams_remove(ffm_known_stream *gone);

/* Whether some stream was non-blocking, even if it no longer exists. */
bool ffm_streams_had_nonblocking(void);

/* Whether no stream was ever created, and no thread has used its own default stream. */
bool ffm_streams_only_legacy(void);

/* Whether the calling thread's use of its own default stream is noted already. Needs no lock. */
bool ffm_streams_own_noted(void);
void ffm_streams_note_own(void);

/* Number of threads that have used their own default stream. */
uint32_t ffm_streams_of_threads(void);

/* Whether a query of the calling thread asks about the right stream: the handle of another thread's own default stream
 * would mean its own. */
bool ffm_streams_may_ask(uint64_t stream);

/* Whether all work of a stream is done. False if that cannot be asked. No stream may be asked while it is captured. */
bool ffm_streams_idle(uint64_t stream);

/* Forget all streams: their context is gone, or this is a forked child. */
void ffm_streams_forget(void);

#endif
