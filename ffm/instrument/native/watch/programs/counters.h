/* Instructions that read the processor's own counter (RDTSC, RDTSCP), as the page watch sees them: it puts a breakpoint
 * in their place. The trace watch sees them in its translation. */
#ifndef FFM_COUNTERS_H
#define FFM_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Replace the instruction at an address. Nothing happens if its page cannot be written. */
void ffm_counters_watch(uint64_t instruction, uint32_t bytes);

/* An operation or a wait has ended: reads are seen again where there were many before. */
void ffm_counters_round(void);

/* In a forked child, where a thread that no longer exists may have held the lock. */
void ffm_counters_after_fork(void);

/* In the handler of SIGTRAP: if one of these was reached, execute it. */
bool ffm_counters_read(ucontext_t *context);

#endif
