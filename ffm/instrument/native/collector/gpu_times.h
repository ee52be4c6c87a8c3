/* How long the GPU takes for what the program enqueues, measured with two events around it (CUDA Driver API, "Event
 * Management": resolution half a microsecond). Work that the call itself waits for cannot be timed this way: the second
 * event would come after the wait. */
#ifndef FFM_GPU_TIMES_H
#define FFM_GPU_TIMES_H

#include "catalogue.h"
#include "thread.h"

/* Before a call that enqueues work: record the first event. */
void ffm_gpu_times_before(const ffm_function *function, const ffm_operation *operation, ffm_thread *thread);

/* After each call: record the second event, for record `number` of its thread, and collect the times of finished
 * work. */
void ffm_gpu_times_after(const ffm_function *function, const ffm_operation *operation, uint64_t number,
                         ffm_thread *thread);

/* In a forked child: the parent's events are not ours. */
void ffm_gpu_times_after_fork(void);

#endif
