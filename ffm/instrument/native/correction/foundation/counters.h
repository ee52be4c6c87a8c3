/* The library's counters, in a file that outlives the process. */
#ifndef FFM_REMEDY_COUNTERS_H
#define FFM_REMEDY_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "remedy_records.h"

/* Create `folder`/remedy-PID.ffm with room for this many sites. False if it cannot be created. */
bool ffm_counters_open(const char *folder, uint32_t sites);

/* In a forked child: count in a separate file. */
void ffm_counters_after_fork(void);

/* Never NULL. Counts are lost before the file is created, or if it cannot be created. */
extern ffm_remedy_counters *ffm_counters;
extern ffm_remedy_tally *ffm_tallies;
extern ffm_remedy_trial *ffm_trials; /* by unit */

static inline void ffm_count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Increment a counter by its field name. */
#define FFM_COUNT(field) ffm_count(&ffm_counters->field)

#endif
