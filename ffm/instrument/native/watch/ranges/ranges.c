#include "ranges.h"

#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>

#include "calls_in_progress.h"
#include "gathering.h"
#include "habits.h"
#include "intervals.h"
#include "protection.h"
#include "ranges_lock.h"
#include "traced.h"
#include "unsettled.h"

/* Each range may add two mappings to the 65,530 that a process may have (vm.max_map_count); most are left to the
 * program. */
enum { CAPACITY = FFM_UNSETTLED_ROOM, PAGE = FFM_RANGES_PAGE, HUGE_PAGE = 2 << 20 };

static struct {
    bool held_open;
    uint32_t count;
    uint32_t rests;   /* remainders of downloads among them */
    uint32_t joining; /* those that are to count as used with others */
    uint32_t resting;
    ffm_range *ranges;
    ffm_intervals by_address; /* a range's number is its place, from 1; the whole pages that it lies on */
} watched;

uint32_t ffm_ranges_count(void)
{
    return __atomic_load_n(&watched.count, __ATOMIC_RELAXED);
}

uint32_t ffm_ranges_rests(void)
{
    return watched.rests;
}

uint32_t ffm_ranges_joining(void)
{
    return watched.joining;
}

uint32_t ffm_ranges_resting(void)
{
    return watched.resting;
}

ffm_range *ffm_ranges_at(uint32_t place)
{
    return &watched.ranges[place];
}

static void index_range(uint32_t place, bool wanted)
{
    const ffm_range *range = &watched.ranges[place];
    const uint64_t last = ffm_range_last_page(range) > range->start ? ffm_range_last_page(range) : range->start + 1;
    if (wanted)
        ffm_intervals_add(&watched.by_address, place + 1, ffm_range_first_page(range), last);
    else
        ffm_intervals_remove(&watched.by_address, place + 1);
}

/* A thread that no longer exists may have been changing the tree. */
void ffm_ranges_lock_after_fork(void)
{
    ffm_ranges_unlock_in_handler();
    ffm_ranges_lock();
    watched.by_address.root = 0;
    ffm_ranges_begin_versions();
    for (uint32_t i = 0; i < watched.count; i++)
        index_range(i, true);
    ffm_unsettled_reset(watched.count);
}

/* Descending, in place. */
static void sort(uint32_t *numbers, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint32_t moved = numbers[i];
        uint32_t to = i;
        for (; to > 0 && numbers[to - 1] < moved; to--)
            numbers[to] = numbers[to - 1];
        numbers[to] = moved;
    }
}

ffm_nearby ffm_ranges_nearby(uint64_t start, uint64_t end)
{
    ffm_nearby nearby = {.count = ffm_ranges_count(), .all = true};
    if (nearby.count <= FFM_NEARBY / 4)
        return nearby;
    const uint32_t found = ffm_intervals_within(&watched.by_address, start, end, nearby.places, FFM_NEARBY);
    if (found > FFM_NEARBY)
        return nearby;
    nearby.all = false;
    nearby.count = found;
    sort(nearby.places, found);
    for (uint32_t i = 0; i < found; i++)
        nearby.places[i]--;
    return nearby;
}

static int64_t renew(uint64_t first, uint64_t last)
{
    const ffm_nearby nearby = ffm_ranges_nearby(first, last);
    return ffm_protection_renew(watched.ranges, &nearby, first, last);
}

/* 0, or the error with which the kernel refuses some of it. */
static int64_t apply(uint64_t first, uint64_t last)
{
    return ffm_gathering_change(renew, first, last);
}

void ffm_ranges_gather(void)
{
    ffm_ranges_begin_change();
    ffm_gathering_begin();
}

bool ffm_ranges_gathered(ffm_page *refused)
{
    const bool all = ffm_gathering_end(renew, refused);
    ffm_ranges_end_change();
    return all;
}

static void set_state(ffm_range *range, ffm_range_state state)
{
    watched.resting += (uint32_t)(state == FFM_RANGE_RESTING) - (uint32_t)(range->state == FFM_RANGE_RESTING);
    range->state = state;
}

/* Within a change. */
static bool add(const ffm_range *range)
{
    if (watched.ranges == NULL) {
        const size_t bytes = CAPACITY * sizeof *watched.ranges;
        char *pages = mmap(NULL, bytes + (CAPACITY + 1) * sizeof *watched.by_address.nodes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED)
            return false;
        watched.by_address.nodes = (ffm_interval *)(pages + bytes);
        watched.ranges = (ffm_range *)pages;
    }
    if (watched.count == CAPACITY)
        return false;
    ffm_range *added = &watched.ranges[watched.count];
    *added = *range;
    added->start = range->box.address;
    added->end = ffm_box_end(&range->box);
    added->page = ffm_trace_on() ? 1 : PAGE;
    added->state = FFM_RANGE_PENDING;
    watched.rests += added->rest;
    watched.joining += added->joins;
    index_range(watched.count, true);
    ffm_unsettled_add(watched.count);
    __atomic_store_n(&watched.count, watched.count + 1, __ATOMIC_RELAXED);
    return true;
}

bool ffm_ranges_add(const ffm_range *range)
{
    ffm_ranges_begin_change();
    const bool added = add(range);
    ffm_ranges_end_change();
    return added;
}

/* Within a change. */
static void set_page(ffm_range *range, uint32_t page)
{
    if (range->page == page)
        return;
    index_range((uint32_t)(range - watched.ranges), false);
    range->page = page;
    index_range((uint32_t)(range - watched.ranges), true);
}

/* Within a change. */
static bool add_in(const ffm_range *range, ffm_range_state state)
{
    if (!add(range))
        return false;
    set_page(&watched.ranges[watched.count - 1], range->page);
    set_state(&watched.ranges[watched.count - 1], state);
    return true;
}

bool ffm_ranges_add_armed(const ffm_range *range)
{
    ffm_ranges_begin_change();
    const bool added = add_in(range, FFM_RANGE_ARMED);
    ffm_ranges_end_change();
    return added;
}

/* The range is about to be overwritten, released, or lost. What a launch writes may be given up for a later launch
 * before any wait. */
static void end_untouched(ffm_range *range)
{
    if (range->habit != 0 && !range->told && (range->download || range->covered))
        ffm_habit_all_broken(range->habit);
    range->told = true;
}

void ffm_ranges_replace(uint32_t place, const ffm_range *range)
{
    ffm_range *at = &watched.ranges[place];
    end_untouched(at);
    const ffm_range before = *at;
    watched.joining += (uint32_t)range->joins - (uint32_t)before.joins;
    ffm_ranges_begin_change();
    *at = *range;
    at->start = before.start;
    at->end = before.end;
    at->page = before.page;
    at->state = FFM_RANGE_PREPARED;
    ffm_ranges_unsettle(at);
    ffm_ranges_end_change();
}

void ffm_ranges_keep(ffm_range *range)
{
    end_untouched(range);
    ffm_ranges_begin_change();
    set_state(range, FFM_RANGE_PREPARED);
    range->unchanged = false;
    ffm_ranges_end_change();
}

void ffm_ranges_hold_open(bool hold)
{
    watched.held_open = hold;
    for (uint32_t i = 0; i < watched.count && hold; i++) {
        ffm_range *range = &watched.ranges[i];
        if (!ffm_range_is_protected(range))
            continue;
        range->forking = range->state != FFM_RANGE_PREPARED;
        ffm_ranges_disarm(range, range->forking ? FFM_RANGE_OPEN : FFM_RANGE_PENDING);
    }
}

/* Only where the kernel demands whole huge pages: elsewhere they contain memory that is not the range's, and what the
 * kernel has protected before it refuses the rest stays protected. */
static int64_t arm_huge(ffm_range *range)
{
    ffm_ranges_begin_change();
    set_page(range, HUGE_PAGE);
    const int64_t error = apply(ffm_range_first_page(range), ffm_range_last_page(range));
    if (error != 0)
        set_page(range, PAGE);
    ffm_ranges_end_change();
    return error;
}

/* Whether the kernel would refuse a call that another thread is making, or uses the range for it unseen. */
static bool disturbs(const ffm_range *range)
{
    const ffm_closing closing = {.start = range->start,
                                 .end = range->end,
                                 .first_page = ffm_range_first_page(range),
                                 .last_page = ffm_range_last_page(range),
                                 .by_key = ffm_keys_closed(false) != 0,
                                 .writing_only = range->writes_only};
    return !ffm_trace_on() && ffm_calls_in_progress_use(&closing);
}

bool ffm_ranges_arm(ffm_range *range)
{
    if (watched.held_open) {
        range->forking = true;
        set_state(range, FFM_RANGE_OPEN);
        return true;
    }
    if (ffm_trace_on() && !ffm_trace_complete())
        return false;
    const bool prepared = range->state == FFM_RANGE_PREPARED;
    set_state(range, FFM_RANGE_ARMED);
    int64_t error = 0;
    if (disturbs(range)) /* one that begins now finds the range armed */
        error = -EBUSY;
    else if (!prepared)
        error = apply(ffm_range_first_page(range), ffm_range_last_page(range));
    if (error == -EINVAL) /* a part of a huge page from the system's pool */
        error = arm_huge(range);
    if (error != 0)
        ffm_ranges_disarm(range, FFM_RANGE_DORMANT);
    return error == 0;
}

bool ffm_ranges_prepare(ffm_range *range)
{
    if (watched.held_open || (ffm_trace_on() && !ffm_trace_complete()) || disturbs(range))
        return false;
    set_state(range, FFM_RANGE_PREPARED);
    const bool prepared = apply(ffm_range_first_page(range), ffm_range_last_page(range)) == 0;
    if (!prepared)
        ffm_ranges_disarm(range, FFM_RANGE_PENDING);
    return prepared;
}

void ffm_ranges_unsettle(const ffm_range *range)
{
    ffm_unsettled_add((uint32_t)(range - watched.ranges));
}

void ffm_ranges_disarm(ffm_range *range, ffm_range_state next)
{
    const bool closed = ffm_range_is_protected(range);
    ffm_ranges_begin_change();
    range->unchanged = false;
    range->intact = range->intact && next != FFM_RANGE_PENDING;
    set_state(range, next);
    ffm_ranges_unsettle(range);
    if (closed)
        apply(ffm_range_first_page(range), ffm_range_last_page(range));
    ffm_ranges_end_change();
}

void ffm_ranges_remove(uint32_t place)
{
    const uint32_t last = watched.count - 1;
    end_untouched(&watched.ranges[place]);
    ffm_ranges_disarm(&watched.ranges[place], FFM_RANGE_DORMANT);
    watched.rests -= watched.ranges[place].rest;
    watched.joining -= watched.ranges[place].joins;
    ffm_ranges_begin_change();
    index_range(place, false);
    ffm_unsettled_drop(place);
    if (last != place) {
        index_range(last, false);
        watched.ranges[place] = watched.ranges[last];
        index_range(place, true);
        ffm_unsettled_moved(last, place);
    }
    __atomic_store_n(&watched.count, watched.count - 1, __ATOMIC_RELAXED);
    ffm_ranges_end_change();
}

static ffm_box piece(uint64_t start, uint64_t end)
{
    return (ffm_box){start, end - start, end - start, 1, end - start, 1, true};
}

void ffm_ranges_cut_at(uint32_t place, uint64_t start, uint64_t end)
{
    ffm_range *range = &watched.ranges[place];
    bool plain = range->box.height == 1 && range->box.depth == 1;
    if ((start <= range->start && range->end <= end) || range->start == range->end) {
        ffm_ranges_remove(place);
        return;
    }
    /* If there are several rows, the rest stays watched: an access to the removed part counts as well. */
    if (!plain || end <= range->start || start >= range->end)
        return;
    bool before = start > range->start, behind = end < range->end;
    if (before && behind && watched.count == CAPACITY)
        return;
    uint64_t first = ffm_range_first_page(range), last = ffm_range_last_page(range);
    ffm_range rest = *range;
    ffm_ranges_begin_change();
    index_range(place, false);
    range->box = before ? piece(rest.start, start) : piece(end, rest.end);
    range->start = range->box.address;
    range->end = ffm_box_end(&range->box);
    index_range(place, true);
    if (before && behind) {
        rest.box = piece(end, rest.end);
        add_in(&rest, rest.state);
    }
    /* The trace watch finds nothing if its marks are outdated, and there are too many cuts to renew them. */
    if (ffm_range_is_protected(&rest) && !(rest.rest && ffm_trace_on()))
        apply(first, last);
    ffm_ranges_end_change();
}

void ffm_ranges_cut(uint64_t start, uint64_t end)
{
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        if (watched.ranges[place].start < end && start < watched.ranges[place].end)
            ffm_ranges_cut_at(place, start, end);
    }
}

void ffm_ranges_cut_box(const ffm_box *box)
{
    if (box->height == 1 && box->depth == 1) {
        ffm_ranges_cut(box->address, ffm_box_end(box));
        return;
    }
    const ffm_nearby nearby = ffm_ranges_nearby(box->address, ffm_box_end(box));
    for (uint32_t i = 0; i < nearby.count; i++)
        if (ffm_box_same(&watched.ranges[ffm_nearby_place(&nearby, i)].box, box))
            ffm_ranges_remove(ffm_nearby_place(&nearby, i));
}

bool ffm_ranges_page_of(uint64_t address, ffm_page *page)
{
    const ffm_nearby nearby = ffm_ranges_nearby(address, address + 1);
    page->bytes = 0;
    for (uint32_t i = 0; i < nearby.count; i++) {
        ffm_range *range = &watched.ranges[ffm_nearby_place(&nearby, i)];
        if (!ffm_range_shares_page(range, address, address + 1))
            continue;
        if (range->state == FFM_RANGE_PREPARED) /* nothing is lost, and nothing on the page need be stepped over */
            ffm_ranges_disarm(range, FFM_RANGE_PENDING);
        else if (range->page > page->bytes)
            page->bytes = range->page;
    }
    if (page->bytes == 0)
        return false;
    page->start = address & ~((uint64_t)page->bytes - 1);
    return true;
}

bool ffm_ranges_open_page(const ffm_page *page)
{
    return ffm_protection_lift(page->start, page->bytes);
}

void ffm_ranges_close_page(const ffm_page *page)
{
    apply(page->start, page->start + page->bytes);
}
