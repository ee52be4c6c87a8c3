#include "arming.h"

#include "accesses.h"
#include "clock.h"
#include "extents.h"
#include "ranges.h"
#include "records.h"
#include "waiters.h"

enum { DORMANT_RANGES = 2048, DORMANT_OF_ONE = 256 }; /* while a single thread has waited */

static uint64_t waits;

uint64_t ffm_arming_waits(void)
{
    return __atomic_load_n(&waits, __ATOMIC_RELAXED);
}

void ffm_arming_event_recorded(void)
{
    __atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
}

/* If many ranges are kept only for other threads' waits, the oldest is given up. */
static void forget_dormant(void)
{
    uint32_t dormant = 0, oldest = 0;
    for (uint32_t i = 0; i < ffm_ranges_count(); i++) {
        if (ffm_ranges_at(i)->state != FFM_RANGE_DORMANT)
            continue;
        if (dormant++ == 0 || ffm_ranges_at(i)->issued < ffm_ranges_at(oldest)->issued)
            oldest = i;
    }
    if (dormant > (uint32_t)(ffm_waiters_several() ? DORMANT_RANGES : DORMANT_OF_ONE))
        ffm_access_lost(oldest, ffm_now());
}

/* A covered range of a launch makes the earlier ones of its block and stream redundant: the same waits cover them. */
static bool superseded(const ffm_range *range)
{
    const ffm_nearby nearby = ffm_ranges_nearby(range->box.address, ffm_box_end(&range->box));
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *other = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (other->launch && other->covered && other->stream == range->stream && other->issued > range->issued &&
            other->writes_only == range->writes_only && ffm_box_same(&other->box, &range->box))
            return true;
    }
    return false;
}

static bool wants_arming(const ffm_range *range, bool covers, const ffm_thread *thread)
{
    if (range->state == FFM_RANGE_PENDING)
        return true;
    return range->state == FFM_RANGE_DORMANT && covers && (range->done & ffm_waiters_bit(thread)) == 0;
}

void ffm_arming_wait_ended(const ffm_cover *cover, const ffm_thread *thread)
{
    __atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);
    ffm_waiters_add(thread);
    if (ffm_ranges_count() == 0)
        return;
    ffm_ranges_lock();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        bool covers = ffm_covers(cover, range->context, range->stream, range->issued);
        if (covers) {
            range->covered = true;
            range->waited |= ffm_waiters_bit(thread);
            range->touched &= ~ffm_waiters_bit(thread);
            range->covers++;
        }
        if (range->launch && superseded(range)) {
            ffm_access_over(i - 1);
            continue;
        }
        if (wants_arming(range, covers, thread)) {
            range->armed = 0;
            if (!ffm_ranges_arm(range)) {
                ffm_access_lost(i - 1, ffm_now());
                continue;
            }
        }
        if (range->covered && range->state == FFM_RANGE_ARMED)
            ffm_extents_begin(range);
    }
    forget_dormant();
    uint64_t resumed = ffm_now();
    for (uint32_t i = 0; i < ffm_ranges_count(); i++)
        if (ffm_ranges_at(i)->armed == 0)
            ffm_ranges_at(i)->armed = resumed;
    ffm_ranges_unlock();
}
