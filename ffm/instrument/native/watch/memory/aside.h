/* Ranges that share pages with memory on which the kernel, the driver or the collector is working. Where keys close
 * pages, the calling thread alone is admitted to them (keys.h): for system calls before they are announced here, for
 * calls of the driver here. Otherwise they are set aside meanwhile, and armed again afterwards. */
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

/* The same around a driver call that may read, or also write there: system calls inside it do not end it. */
void ffm_aside_driver(uint64_t start, uint64_t end, bool writing);
void ffm_aside_driver_over(void);

#endif
