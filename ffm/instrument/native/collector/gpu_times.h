/* How long the GPU works at what the program enqueues, measured by two events around it (CUDA Driver API, "Event
 * Management": resolution half a microsecond). Work for which the call itself waits cannot be timed this way: the
 * second event comes after the wait. */
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
