#include "giving_way.h"

#include "accesses.h"
#include "arming.h"
#include "extents.h"
#include "waiters.h"
#include "watch_budget.h"

enum { ONE_IN = 100 };

static uint64_t missed, missed_at; /* how many waits, and ffm_waiters_waits at the last one */

/* Whether a use of it would be recorded. */
static bool counts(const ffm_range *range)
{
    return !range->rest && !range->probe;
}

/* What is armed there. */
static uint32_t ranges_on(const ffm_page *page)
{
    uint32_t count = 0;
    const ffm_nearby nearby = ffm_ranges_nearby(page->start, page->start + page->bytes);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        count += counts(range) && ffm_range_shares_page(range, page->start, page->start + page->bytes);
    }
    return count;
}

/* A use now relies on a wait that has ended. */
static bool can_be_presumed(const ffm_range *range)
{
    return range->state == FFM_RANGE_ARMED && range->covered && range->inherited == 0 && counts(range);
}

/* Calls for what is watched there; a use of what is prepared relies on no wait. */
static void give_up_on(uint64_t start, uint64_t end, uint64_t time, void (*give_up)(uint32_t place, uint64_t time))
{
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        ffm_range *range = ffm_ranges_at(place);
        if (!ffm_range_shares_page(range, start, end))
            continue;
        if (range->state == FFM_RANGE_PREPARED)
            ffm_ranges_disarm(range, FFM_RANGE_PENDING);
        else
            give_up(place, time);
    }
}

static void presume(uint32_t place, uint64_t time)
{
    ffm_range *range = ffm_ranges_at(place);
    if (can_be_presumed(range)) {
        ffm_extents_lose(range);
        ffm_access_presume_unwatched(place);
    } else {
        ffm_access_lost(place, time);
    }
}

/* No verdict rests on it: what has a budget counts as used at an unknown time, as if it had never been watched. */
static void leave_unseen(uint32_t place, uint64_t time)
{
    const ffm_range *range = ffm_ranges_at(place);
    (void)time;
    if (counts(range))
        ffm_access_record_presumed(range, FFM_ACCESS_LAST);
    ffm_ranges_remove(place);
}

/* Several pages may give way after one wait. */
static uint64_t cost_here(void)
{
    return missed == 0 || missed_at != ffm_waiters_waits();
}

static void give_way(uint64_t start, uint64_t end, uint64_t time)
{
    missed += cost_here();
    missed_at = ffm_waiters_waits();
    give_up_on(start, end, time, presume);
}

bool ffm_access_give_way(const ffm_page *page, bool urgent, uint64_t time)
{
    if (ffm_watch_budget_is_open()) {
        give_up_on(page->start, page->start + page->bytes, time, leave_unseen);
        return true;
    }
    const bool several = ffm_access_others_may_wait();
    const uint64_t cost = several ? ranges_on(page) : cost_here();
    if (!urgent && missed + cost > ffm_arming_turns() / ONE_IN)
        return false;
    if (several) {
        missed += cost;
        ffm_access_give_up(page, time);
    } else {
        give_way(page->start, page->start + page->bytes, time);
    }
    return true;
}

void ffm_access_make_room(uint64_t start, uint64_t end, uint64_t time)
{
    if (ffm_watch_budget_is_open())
        give_up_on(start, end, time, leave_unseen);
    else if (!ffm_access_others_may_wait())
        give_way(start, end, time);
}
