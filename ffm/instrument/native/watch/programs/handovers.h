/* How threads hand something to each other: semaphores, barriers, and the joining of threads. */
#ifndef FFM_HANDOVERS_H
#define FFM_HANDOVERS_H

#include "followed.h"

/* From now on, they are recorded. */
void ffm_handovers_open(void);

/* A thread of the program, as pthread_join names it, has a number in the recording. */
void ffm_handovers_thread(uint64_t name, uint32_t number);

/* The calling thread is about to start another one; and, called by that one, it begins. `object` is the same address in
 * both. */
void ffm_handovers_starts(uint64_t object);
void ffm_handovers_begins(uint64_t object);

extern ffm_followed ffm_handovers[];

#endif
