#include "resting.h"

#include "accesses.h"
#include "clock.h"
#include "ranges.h"
#include "threads.h"

/* Locked. */
static void arm_all(void)
{
    const uint64_t now = ffm_now();
    for (uint32_t i = ffm_ranges_count(); i > 0 && ffm_ranges_resting() > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        if (range->state != FFM_RANGE_RESTING)
            continue;
        ffm_ranges_unsettle(range);
        if (!ffm_ranges_arm(range))
            ffm_access_lost(i - 1, now);
    }
}

void ffm_resting_end(void)
{
    ffm_ranges_lock();
    arm_all();
    ffm_ranges_unlock();
}

void ffm_resting_wake(void)
{
    if (!ffm_threads_asleep())
        return;
    ffm_ranges_lock(); /* from here on, no handler wakes it a second time */
    if (ffm_threads_wake() && !(ffm_access_rests_for_caller() && ffm_threads_alone() != 0))
        arm_all();
    ffm_ranges_unlock();
}
