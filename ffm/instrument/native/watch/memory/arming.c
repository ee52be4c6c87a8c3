#include "arming.h"

#include "accesses.h"
#include "clock.h"
#include "extents.h"
#include "habits.h"
#include "keys.h"
#include "ranges.h"
#include "records.h"
#include "unsettled.h"
#include "waiters.h"
#include "watch_budget.h"

enum { LARGE = 1 << 20 }; /* bytes, from which on closing pages takes longer than a few faults */
enum { DORMANT_RANGES = 2048, DORMANT_OF_ONE = 256 }; /* while a single thread has waited */

static uint64_t turns;
static bool first_for_some; /* whether the wait that ends was the first for some range */

uint64_t ffm_arming_turns(void)
{
    return turns;
}

/* If many ranges are kept only for other threads' waits, the oldest is given up. */
static void forget_dormant(void)
{
    uint32_t dormant = 0, oldest = 0;
    for (uint32_t i = FFM_NO_PLACE; (i = ffm_unsettled_after(i)) != FFM_NO_PLACE;) {
        if (ffm_ranges_at(i)->state != FFM_RANGE_DORMANT)
            continue;
        if (dormant++ == 0 || ffm_ranges_at(i)->issued < ffm_ranges_at(oldest)->issued)
            oldest = i;
    }
    if (dormant > (uint32_t)(ffm_waiters_several() ? DORMANT_RANGES : DORMANT_OF_ONE))
        ffm_access_lost(oldest, ffm_now());
}

/* Whether an armed range of the same memory says that the CPU has not touched it since it was looked at. */
static bool is_unchanged(const ffm_range *range)
{
    const ffm_nearby nearby = ffm_ranges_nearby(range->box.address, ffm_box_end(&range->box));
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *other = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (other->unchanged && other->state == FFM_RANGE_ARMED && ffm_box_same(&other->box, &range->box))
            return true;
    }
    return false;
}

/* A covered range of a launch makes the earlier ones of its block and stream redundant: the same waits cover them. */
static void supersede(const ffm_range newest)
{
    const ffm_nearby nearby = ffm_ranges_nearby(newest.box.address, ffm_box_end(&newest.box));
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *other = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (other->launch && other->stream == newest.stream && other->issued < newest.issued &&
            other->writes_only == newest.writes_only && ffm_box_same(&other->box, &newest.box))
            ffm_access_over(ffm_nearby_place(&nearby, i));
    }
}

static bool rests(const ffm_range *range)
{
    return range->state == FFM_RANGE_RESTING || range->state == FFM_RANGE_KEYED;
}

static bool wants_arming(const ffm_range *range, bool covers, const ffm_thread *thread)
{
    if (range->state == FFM_RANGE_PENDING || range->state == FFM_RANGE_PREPARED)
        return true;
    if (range->state == FFM_RANGE_KEYED && !ffm_keys_are_mine(range->key))
        return false; /* it is protected against this thread */
    if (rests(range))
        return (range->touched & ffm_waiters_bit(thread)) == 0;
    return range->state == FFM_RANGE_DORMANT && covers && (range->done & ffm_waiters_bit(thread)) == 0;
}

/* What a thread touches after its own wait for its own work relies on that wait, and later waits add nothing. So where
 * a single thread has called the driver, what it has touched rests until others wake. */
static bool stays_touched(const ffm_range *range)
{
    return rests(range) && ffm_thread_is_only();
}

/* Whether no wait of a thread that has waited before changes anything: all that it would set is set. */
static bool is_settled(const ffm_range *range)
{
    const uint64_t waiters = ffm_waiters_all();
    const bool waits_for_touch = range->state == FFM_RANGE_ARMED && range->touched == 0;
    return (waits_for_touch || stays_touched(range)) && range->covered && range->covers > 1 &&
           (range->waited & waiters) == waiters && (range->followed || range->granule == 0);
}

/* A range that was spared has met its first wait. Returns whether it counts as used now. Otherwise it is watched, also
 * if the wait is not known to cover it. */
static bool is_presumed(uint32_t place, bool first)
{
    ffm_range *range = ffm_ranges_at(place);
    const ffm_range spared = *range;
    range->spared = false;
    if (!first || !ffm_habit_is(range->habit, range->waited_at))
        return false;
    ffm_access_presume(place);
    if (spared.launch)
        supersede(spared);
    return true;
}

/* At the end of the table, for a block that counts as used. */
static void add_probe(const ffm_range *written, uint64_t page)
{
    ffm_range probe = *written;
    const uint64_t start = page > written->start ? page : written->start;
    const uint64_t end = page + FFM_RANGES_PAGE < written->end ? page + FFM_RANGES_PAGE : written->end;
    probe.box = (ffm_box){start, end - start, end - start, 1, end - start, 1, true};
    probe.probe = true;
    probe.unchanged = probe.joins = false;
    probe.waits = ffm_waiters_waits();
    if (!ffm_ranges_add(&probe))
        return;
    const uint32_t place = ffm_ranges_count() - 1;
    if (!ffm_ranges_arm(ffm_ranges_at(place)))
        ffm_ranges_remove(place);
}

/* A large block has met its first wait, and is used on one page first each time: it counts as used, and only that page
 * is watched. */
static bool is_probed(uint32_t place, bool first)
{
    const ffm_range written = *ffm_ranges_at(place);
    if (!first || !written.launch || written.writes_only || written.habit == 0 || written.box.width < LARGE ||
        written.state != FFM_RANGE_PENDING || ffm_access_others_may_wait())
        return false;
    const uint64_t page = ffm_habit_page(written.habit, written.waited_at);
    if (page + FFM_RANGES_PAGE <= written.start || page >= written.end)
        return false;
    ffm_access_presume(place);
    supersede(written);
    add_probe(&written, page);
    return true;
}

/* What is used after a further wait, if at all, is not used by habit. */
static void end_probe(uint32_t place, const ffm_cover *cover)
{
    const ffm_range *probe = ffm_ranges_at(place);
    if (probe->waits != ffm_waiters_waits() && ffm_covers(cover, probe->context, probe->stream, probe->issued))
        ffm_ranges_remove(place);
}

static void end_wait(uint32_t place, const ffm_cover *cover, const ffm_thread *thread, uint32_t site)
{
    ffm_range *range = ffm_ranges_at(place);
    if (range->probe) {
        end_probe(place, cover);
        return;
    }
    if (is_settled(range)) {
        ffm_unsettled_drop(place);
        return;
    }
    const bool covers = ffm_covers(cover, range->context, range->stream, range->issued);
    const bool first = covers && !range->covered, supersedes = first && range->launch;
    if (first) {
        range->waited_at = site;
        range->waiter = thread->number;
        first_for_some = true;
    }
    if (covers) {
        range->covered = true;
        range->waited |= ffm_waiters_bit(thread);
        if (!stays_touched(range))
            range->touched &= ~ffm_waiters_bit(thread);
        range->covers++;
    }
    if ((range->spared && is_presumed(place, first)) || is_probed(place, first))
        return;
    if (wants_arming(range, covers, thread)) {
        if (!rests(range))
            range->armed = 0;
        if (!ffm_ranges_arm(range)) {
            ffm_access_lost(place, ffm_now());
            return;
        }
    }
    if (range->covered && range->state == FFM_RANGE_ARMED)
        ffm_extents_begin(range, first);
    if (supersedes) {
        range->unchanged = range->state == FFM_RANGE_ARMED && is_unchanged(range);
        supersede(*range);
    }
}

void ffm_arming_wait_ended(const ffm_cover *cover, const ffm_thread *thread, uint32_t site)
{
    ffm_waiters_waited();
    const bool first = ffm_waiters_add(thread);
    if (ffm_ranges_count() == 0)
        return;
    const uint64_t since = ffm_watch_budget_is_open() ? ffm_now() : 0;
    ffm_ranges_lock();
    if (first)
        ffm_unsettled_reset(ffm_ranges_count());
    first_for_some = false;
    for (uint32_t place; (place = ffm_unsettled_take()) != FFM_NO_PLACE;)
        end_wait(place, cover, thread, site);
    ffm_unsettled_end();
    if (first_for_some) {
        turns++;
        ffm_habit_turn(site);
    }
    forget_dormant();
    uint64_t resumed = ffm_now();
    for (uint32_t i = FFM_NO_PLACE; (i = ffm_unsettled_after(i)) != FFM_NO_PLACE;)
        if (ffm_ranges_at(i)->armed == 0)
            ffm_ranges_at(i)->armed = resumed;
    ffm_ranges_unlock();
    ffm_watch_budget_spend(since, false);
}
