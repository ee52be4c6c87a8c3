/* Whether corrections are made at all, and the lock over all that they keep. */
#ifndef FFM_REMEDY_STATE_H
#define FFM_REMEDY_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "remedy_records.h"

/* Over pool, streams and uploads. Never held while the driver waits for the GPU. */
extern pthread_mutex_t ffm_lock;

/* Correct no more in this process, for an FFM_STOP_ reason. What is pooled goes back to the driver. */
void ffm_stop(uint32_t reason);
bool ffm_stopped(void);

/* A capture of a stream is about to begin, or ended: while one is under way nothing is corrected, and nothing of ours
 * is enqueued on a stream that could be captured. Whoever holds the lock and sees none need not fear that one begins.
 */
void ffm_capture(bool begins);
bool ffm_capturing(void);

/* A context became known. The second one stops all corrections. */
void ffm_context_seen(uint64_t context);

/* Whether the context is in an error that only its end mends: what is enqueued will not be done. */
bool ffm_context_failed(void);

/* The context is about to be destroyed or reset: what is kept in it goes with it. */
void ffm_context_ends(void);

void ffm_state_after_fork(void);

#endif
