/* Whether corrections are made at all, and the lock over their state. */
#ifndef FFM_REMEDY_STATE_H
#define FFM_REMEDY_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "remedy_records.h"

/* Protects pool, streams and uploads. Never held while the driver waits for the GPU. */
extern pthread_mutex_t ffm_lock;

/* Stop correcting in this process, for an FFM_STOP_ reason. */
void ffm_stop(uint32_t reason);
bool ffm_stopped(void);

/* The function that the first ffm_stop calls (lifetime.h). */
void ffm_state_on_stop(void (*handler)(void));

/* A capture of a stream is about to begin, or ended. While one is under way, nothing is corrected, and nothing of ours
 * is enqueued on a stream that could be captured. No capture can begin while the lock is held.
 */
void ffm_capture(bool begins);
bool ffm_state_capturing(void);

/* A context was seen. The second one stops all corrections. */
void ffm_context_seen(uint64_t context);

/* Whether a context was seen. */
bool ffm_context_known(void);

/* Whether the context that was seen is this one. */
bool ffm_context_is(uint64_t asked);

/* Make the context current for a few driver calls, whichever one the thread has; false if none was seen. */
bool ffm_context_enter(void);
void ffm_context_leave(void);

/* Whether the context is in an error that only its destruction ends: enqueued work will not complete. */
bool ffm_context_failed(void);

/* The driver answered a call. An error of earlier work stops corrections, so that all later calls return it, as they
 * must. */
void ffm_state_answered(int result);

/* For lifetime.c. */
void ffm_state_forget_context(void);
void ffm_state_after_fork(void);

#endif
