#include "watched.h"

#include <stddef.h>

#include "accesses.h"
#include "clock.h"
#include "extents.h"
#include "mappings.h"
#include "questions.h"
#include "resting.h"
#include "threads.h"
#include "traced.h"

enum { PAGE = 4096 };

static bool stacks_wanted = true;
static void (*when_gone)(uint64_t start, uint64_t end); /* NULL if nobody wants to know */

static uint32_t forks; /* in progress, nested or on several threads; under the lock of the ranges */
static uint64_t forking_since;
static uint64_t forking_alone; /* ffm_threads_alone at that time: other threads may touch what is open */

void ffm_watch_want_stacks(bool wanted)
{
    stacks_wanted = wanted;
}

bool ffm_watch_wants_stacks(void)
{
    return stacks_wanted;
}

void ffm_watch_when_gone(void (*handler)(uint64_t start, uint64_t end))
{
    when_gone = handler;
}

void ffm_watch_gone(uint64_t start, uint64_t end)
{
    if (when_gone != NULL)
        when_gone(start, end);
}

bool ffm_watch_in_flight(uint64_t start, uint64_t end)
{
    bool found = false;
    if (!ffm_watch_active())
        return false;
    ffm_ranges_lock();
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count && !found; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        found = !range->writes_only && !range->covered && ffm_box_touches(&range->box, start, end);
    }
    ffm_ranges_unlock();
    return found;
}

static void release(uint64_t start, uint64_t end, bool gone)
{
    if (!ffm_ranges_reach(start, end))
        return;
    ffm_ranges_lock();
    if (!gone)
        ffm_extents_lose_in(start, end);
    ffm_access_over_in(start, end);
    ffm_extents_end(start, end);
    ffm_access_unseen(start, end, true, FFM_ACCESS_RELEASED, 0);
    ffm_ranges_cut(start, end); /* what is in flight has lost its memory */
    ffm_ranges_unlock();
}

void ffm_watch_released(uint64_t start, uint64_t bytes, bool gone)
{
    if (bytes != 0 && ffm_watch_active())
        release(start, (start + bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1), gone);
}

void ffm_watch_freed(uint64_t start, uint64_t bytes)
{
    release(start, start + bytes, true);
}

void ffm_watch_before_fork(void)
{
    ffm_accesses_before_fork();
    ffm_resting_end(); /* the child watches what is armed */
    ffm_ranges_lock();
    ffm_extents_before_fork();
    if (forks++ == 0) {
        forking_since = ffm_now();
        forking_alone = ffm_threads_alone();
    }
    ffm_ranges_hold_open(!ffm_trace_on()); /* otherwise no page is protected */
    ffm_ranges_unlock();
}

static void arm_again(bool missed)
{
    ffm_ranges_hold_open(false);
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        const bool wanted = range->forking && range->state == FFM_RANGE_OPEN;
        range->forking = false;
        if (wanted && (missed || !ffm_ranges_arm(range)))
            ffm_access_lost(i - 1, forking_since);
    }
}

void ffm_watch_forked(void)
{
    ffm_ranges_lock();
    if (--forks == 0)
        arm_again(!ffm_threads_alone_since(forking_alone));
    ffm_ranges_unlock();
}

void ffm_watch_shared(void)
{
    const uint64_t now = ffm_now();
    ffm_mappings_inherited();
    ffm_ranges_lock();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--)
        if (!ffm_ranges_at(i - 1)->covered && !ffm_ranges_at(i - 1)->writes_only)
            ffm_access_lost(i - 1, now);
    ffm_ranges_unlock();
}

void ffm_watch_spare(uint64_t start, uint64_t end)
{
    if (!ffm_watch_active())
        return;
    const uint64_t now = ffm_now();
    start &= ~(uint64_t)(PAGE - 1);
    end = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    ffm_ranges_lock();
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        const ffm_range *range = ffm_ranges_at(place);
        if (ffm_range_first_page(range) < end && start < ffm_range_last_page(range))
            ffm_access_lost(place, now);
    }
    ffm_ranges_unlock();
}

static bool is_watched(const ffm_range *range)
{
    return range->state == FFM_RANGE_ARMED || range->state == FFM_RANGE_OPEN || range->state == FFM_RANGE_RESTING ||
           range->state == FFM_RANGE_KEYED;
}

static void give_up(bool all)
{
    const uint64_t now = ffm_now();
    ffm_ranges_lock();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        if (all || is_watched(ffm_ranges_at(i - 1)))
            ffm_access_lost(i - 1, now);
        else
            ffm_ranges_at(i - 1)->intact = false;
    }
    ffm_ranges_unlock();
}

void ffm_watch_give_up(void)
{
    give_up(false);
}

void ffm_watch_forget(void)
{
    if (!ffm_watch_active())
        return;
    ffm_ranges_lock();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_extents_lose(ffm_ranges_at(i - 1));
        ffm_access_over(i - 1);
    }
    ffm_ranges_unlock();
}

void ffm_watch_lose(void)
{
    ffm_threads_lose();
    ffm_trace_lose();
    give_up(true); /* also what a later wait would arm */
}

void ffm_watch_after_fork(void)
{
    ffm_ranges_lock();
    ffm_accesses_after_fork();
    forks = 0;
    arm_again(false);
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        if (range->writes_only || range->state != FFM_RANGE_ARMED)
            ffm_ranges_remove(i - 1);
    }
    ffm_ranges_unlock();
}
