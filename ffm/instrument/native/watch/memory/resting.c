#include "resting.h"

#include "accesses.h"
#include "clock.h"
#include "keys.h"
#include "ranges.h"
#include "threads.h"

/* Locked. */
static void arm(uint32_t place)
{
    ffm_range *range = ffm_ranges_at(place);
    ffm_ranges_unsettle(range);
    if (!ffm_ranges_arm(range))
        ffm_access_lost(place, ffm_now());
}

/* Locked. */
static void arm_all(void)
{
    for (uint32_t i = ffm_ranges_count(); i > 0 && ffm_ranges_resting() > 0; i--)
        if (ffm_ranges_at(i - 1)->state == FFM_RANGE_RESTING)
            arm(i - 1);
}

/* Locked. */
static void arm_keyed(bool of_caller)
{
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        const ffm_range *range = ffm_ranges_at(i - 1);
        if (range->state == FFM_RANGE_KEYED && (!of_caller || ffm_keys_are_mine(range->key)))
            arm(i - 1);
    }
}

/* Locked. */
static void end(void)
{
    arm_all();
    arm_keyed(false);
}

void ffm_resting_end(void)
{
    ffm_ranges_lock();
    end();
    ffm_ranges_unlock();
}

void ffm_resting_thread_ends(void)
{
    if (!ffm_keys_used())
        return;
    ffm_ranges_lock();
    arm_keyed(true);
    ffm_keys_give_back();
    ffm_ranges_unlock();
}

/* Close without keys what they close. Locked. */
static void close_all_again(void)
{
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        if (range->state == FFM_RANGE_PREPARED)
            ffm_ranges_disarm(range, FFM_RANGE_PENDING);
        else if (range->state == FFM_RANGE_ARMED)
            arm(i - 1);
    }
}

void ffm_resting_without_keys(void)
{
    ffm_ranges_lock();
    ffm_keys_stop();
    end();
    close_all_again();
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
