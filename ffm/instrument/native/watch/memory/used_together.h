/* Results that are used together: several that came one after the other, with a wait for each, and of which none is
 * used before the last one has come.
 *
 * All of them are closed until the first use, so that none of their waits is called needed, or unnecessary, by mistake.
 * The program uses the first one after the last wait, and if it then always uses the others before it waits again,
 * these count as used with it. That saves a fault for each, and opens all their pages at once. It never makes a wait
 * unnecessary that is needed: the others were not used before, and a later use of theirs needs no later wait. In most
 * cases it misses nothing either, because the first use needs the last wait anyway. What is missed otherwise is bounded
 * as for other habits (habits.h), where a wait stands for a first use.
 *
 * Under the lock of the ranges, and safe in signal handlers. */
#ifndef FFM_USED_TOGETHER_H
#define FFM_USED_TOGETHER_H

#include <stdbool.h>
#include <stdint.h>

#include "range.h"

/* Whether the next result of a source, as in habits.h, need not be watched once others are used. */
bool ffm_together_joins(uint32_t source);

/* A result that has a habit is used for the first time, by the thread that waited for it. */
void ffm_together_used(const ffm_range *range);

/* Whether something has been used for the first time since a wait, since this was last asked. */
bool ffm_together_begins(void);

/* Whether another range counts as used with it. */
bool ffm_together_counts(const ffm_range *range);

#endif
