/* How long each thread had a processor, and how long it could have run but had none (stage 2). The kernel counts both,
 * so they are read once for each thread: at its end, or at the process's. */
#ifndef FFM_PROCESSOR_TIMES_H
#define FFM_PROCESSOR_TIMES_H

#include <stdint.h>

/* From now on. */
void ffm_processor_times_open(void);

/* Called in a thread: it made its first driver call and got a number; and it is about to end. */
void ffm_processor_times_thread(uint32_t number);
void ffm_processor_times_thread_ends(void);

/* In a forked child, once its recording is open and its thread has a number there. */
void ffm_processor_times_after_fork(uint32_t number);

#endif
