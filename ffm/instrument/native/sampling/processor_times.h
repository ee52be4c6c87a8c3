/* For how long each thread had a processor, and could have run but had none (stage 2). The kernel counts both, so they
 * are read once a thread: at its end, or at the process's. */
#ifndef FFM_PROCESSOR_TIMES_H
#define FFM_PROCESSOR_TIMES_H

#include <stdint.h>

/* From now on. */
void ffm_processor_times_open(void);

/* The calling thread made its first driver call, and got a number; and it ends. */
void ffm_processor_times_thread(uint32_t number);
void ffm_processor_times_thread_ends(void);

/* In a forked child, after its recording is open, and its thread has its number there. */
void ffm_processor_times_after_fork(uint32_t number);

#endif
