/* Which calls are recorded if the user asked for a portion of the run: those in a window, or in marked iterations.
 *
 * Outside of it, calls that transfer, launch, wait, query and order are let through and only counted. All others are
 * recorded everywhere: they are rare, and tell what later calls mean (allocations, streams, graphs, modules). */
#ifndef FFM_PORTION_H
#define FFM_PORTION_H

#include <stdbool.h>

#include "catalogue.h"
#include "thread.h"

typedef enum {
    FFM_PORTION_ALL,
    FFM_PORTION_TIME,      /* nanoseconds since the first driver call of the process */
    FFM_PORTION_CALLS,     /* counted calls of the process */
    FFM_PORTION_ITERATIONS /* that the program marks */
} ffm_portion_kind;

typedef struct {
    ffm_portion_kind kind;
    uint64_t from, until; /* of a window, without `until` itself */
    uint64_t every;       /* of iterations: each n-th, with the one before and the one after it; 1 for all */
    const char *name;     /* of the marks, or a pattern of names; "" for any; copied */
} ffm_portion;

/* `opens` and `closes` are called at the start and the end of each stretch, and `closes` again after each recorded call
 * that ends outside. Call this before the recording is opened; a second time has no effect. */
void ffm_portion_limit(const ffm_portion *portion, void (*opens)(void), void (*closes)(void));

extern bool ffm_portion_is_limited;

static inline bool ffm_portion_limited(void)
{
    return __builtin_expect(ffm_portion_is_limited, 0);
}

/* Whether the call of a thread that begins `now` is recorded. */
bool ffm_portion_takes(uint32_t function, ffm_thread *thread, uint64_t now);

/* A call that is not recorded has ended. */
void ffm_portion_passed(void);

/* The thread is about to commit the record of a call. */
void ffm_portion_recording(uint32_t function, ffm_thread *thread);

/* A recorded call has ended, and all that is done about it. */
void ffm_portion_recorded(void);

/* Whether what a thread does between two calls is recorded. */
bool ffm_portion_takes_samples(void);

/* Whether a private wait of the thread, under no function of the catalogue, is recorded. */
bool ffm_portion_takes_private(ffm_thread *thread);

/* The program begins or ends an iteration. */
void ffm_portion_mark(const char *name, bool begins);

void ffm_portion_after_fork(void);

#endif
