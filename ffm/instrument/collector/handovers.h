/* By which one thread hands something to another: semaphores, and the joining of threads. Their functions are replaced,
 * as those of clocks.h. */
#ifndef FFM_HANDOVERS_H
#define FFM_HANDOVERS_H

#include <stdint.h>

/* From now on, they are recorded. */
void ffm_handovers_open(void);

/* A thread of the program, as pthread_join names it, has a number in the recording. */
void ffm_handovers_thread(uint64_t name, uint32_t number);

/* The calling thread is about to start another one; and that one begins. `object` is the same address for both. */
void ffm_handovers_starts(uint64_t object);
void ffm_handovers_begins(uint64_t object);

const char *ffm_handovers_name(uint32_t place);
void *ffm_handovers_wrapper(uint32_t place);
void ffm_handovers_bind(uint32_t place, void *original);

#endif
