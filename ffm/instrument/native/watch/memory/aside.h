/* Ranges that share pages with memory on which the kernel, the driver or the collector is working. Where keys close
 * pages, only the calling thread is admitted to them (keys.h): for a system call before it is announced here, for a
 * driver call here. Otherwise the ranges are set aside meanwhile, and armed again afterwards. */
#ifndef FFM_ASIDE_H
#define FFM_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel is about to read or write memory for the program. ffm_aside_over ends this. */
void ffm_aside_system_call(uint64_t start, uint64_t bytes, bool writing);

/* Nothing in [start, end) is touched, but its pages must be open. ffm_aside_over ends this. */
void ffm_aside(uint64_t start, uint64_t end);

/* A handler of the program begins on the calling thread: what is set aside counts as used, since the handler may use it
 * unseen. */
void ffm_aside_interrupted(void);

/* Arm again everything that the calling thread has set aside. */
void ffm_aside_over(void);

/* The same around a driver call that may read or, if `writing`, write there. System calls inside the driver call do not
 * end it. */
void ffm_aside_driver(uint64_t start, uint64_t end, bool writing);
void ffm_aside_driver_over(void);

#endif
