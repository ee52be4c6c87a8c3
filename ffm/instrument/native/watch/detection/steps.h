/* What it may cost to step over accesses to what lies beside the watched memory, on the same page.
 *
 * Results that a program keeps can share pages with what it uses all the time. Up to a share of the run, all such
 * accesses are stepped over. Beyond it, the pages that have been stepped on more than others may be given up: first
 * those with more steps than most, then ever more of them, and all when twice the share is used up. Later, when less
 * than the share has been spent of a longer run, all pages are stepped on again. Under the lock of the ranges. */
#ifndef FFM_STEPS_H
#define FFM_STEPS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on, there is a share. A fault costs this many nanoseconds before it is handled. */
void ffm_steps_open(uint64_t fault_cost);

typedef enum {
    FFM_STEP_OVER,
    FFM_STEP_COSTLY, /* the page had better be given up */
    FFM_STEP_NEVER   /* whatever the run takes, it has had too many steps */
} ffm_step;

/* What to do with an access on a page at a time. Each answer counts. */
ffm_step ffm_steps_next(uint64_t page, uint64_t now);

/* Handling a fault of such an access has taken from a time until now. Needs no lock. */
void ffm_steps_spend(uint64_t since);

#endif
