/* Ranges beside memory that the kernel, the driver or the collector works on, on pages that it shares with them: they
 * are set aside while it does, and armed again afterwards. */
#ifndef FFM_ASIDE_H
#define FFM_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel is about to read or write memory for the program. ffm_aside_over ends that. */
void ffm_aside_system_call(uint64_t start, uint64_t bytes, bool writing);

/* Nothing of [start, end) is touched, but pages there have to be open. ffm_aside_over ends that. */
void ffm_aside(uint64_t start, uint64_t end);

/* All that the calling thread has set aside is armed again. */
void ffm_aside_over(void);

/* The same around a call of the driver: the system calls inside it do not end it. */
void ffm_aside_driver(uint64_t start, uint64_t end);
void ffm_aside_driver_over(void);

#endif
