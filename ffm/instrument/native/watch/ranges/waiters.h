/* The threads that have waited: what is done for one of them may have to be done for the others. */
#ifndef FFM_WAITERS_H
#define FFM_WAITERS_H

#include <stdbool.h>
#include <stdint.h>

#include "thread.h"

/* The bit of a thread in a set of threads. With more than 64 threads, some share one. */
static inline uint64_t ffm_waiters_bit(const ffm_thread *thread)
{
    return 1ULL << (thread->number & 63);
}

/* The thread has waited. False if it is known to have waited before. */
bool ffm_waiters_add(const ffm_thread *thread);

/* All threads that have waited, as a set. */
uint64_t ffm_waiters_all(void);

/* Whether several threads have waited. */
bool ffm_waiters_several(void);

/* How many waits have ended and how many events were recorded so far, in sum; and one more has. */
uint64_t ffm_waiters_waits(void);
void ffm_waiters_waited(void);

#endif
