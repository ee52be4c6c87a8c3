#include "accesses.h"

#include <stddef.h>

#include "clock.h"
#include "extents.h"
#include "habits.h"
#include "keys.h"
#include "packing.h"
#include "records.h"
#include "thread.h"
#include "threads.h"
#include "traced.h"
#include "used_together.h"
#include "waiters.h"

static ffm_packer accesses; /* for the whole process: any thread can touch */

static uint32_t thread_of(const ffm_thread *thread)
{
    return thread == NULL ? 0 : thread->kernel_id;
}

void ffm_access_record(const ffm_range *range, uint32_t kind, uint32_t flags, uint64_t address, uint64_t time,
                       uint32_t stack)
{
    if (range->inherited != 0 && time > range->inherited)
        time = range->inherited; /* the child sees the memory as it was then */
    const ffm_thread *thread = ffm_thread_peek();
    const ffm_access access = {.time = time,
                               .address = address,
                               .operation = range->operation,
                               .armed = range->armed,
                               .operation_thread = range->thread,
                               .stack = stack,
                               .kind = (uint16_t)kind,
                               .flags = (uint16_t)(flags | (range->inherited != 0 ? FFM_ACCESS_INHERITED : 0)),
                               .thread_id = range->inherited != 0 ? range->forked_by : thread_of(thread)};
    ffm_pack_record(&accesses, FFM_CHUNK_ACCESSES, 0, kind ^ stack, &access);
}

/* The first touch need not be the one that relies on the earliest wait: another thread may come later, and be ordered
 * after less. So a range that several waits have covered stays armed while there are other threads. While these sleep,
 * it rests. Otherwise a thread that has touched it is stepped over, up to so many times; under the trace watch, which
 * only looks, more often. Then what others do is unknown. */
enum { REPEATS = 1 << 12, REPEATS_IN_ALL = 1 << 13, REPEATS_TRACED = 1 << 20 };

static uint32_t repeats;
static bool others_matter;

void ffm_accesses_of_others(bool matter)
{
    others_matter = matter;
}

/* Whether another repeated touch of the range is one too many. */
static bool is_worn(ffm_range *range)
{
    if (ffm_trace_on())
        return repeats++ >= REPEATS_TRACED;
    return range->repeats++ == REPEATS || repeats++ >= REPEATS_IN_ALL;
}

static bool others_may_follow(const ffm_range *range)
{
    return others_matter && range->covered && range->covers > 1 && range->inherited == 0 && ffm_threads_several();
}

/* All threads that have never called the driver have one in common. */
static uint64_t bit_here(void)
{
    static const ffm_thread unknown = {.number = UINT32_MAX};
    const ffm_thread *thread = ffm_thread_peek();
    return ffm_waiters_bit(thread == NULL ? &unknown : thread);
}

static __thread char here __attribute__((tls_model("initial-exec"))); /* its address stands for the thread */
static const char *resting_for;

bool ffm_access_rests_for_caller(void)
{
    return resting_for == &here;
}

/* What the calling thread touches next is no news. If the thread has a key of its own, only others fault there, and not
 * those that merely read a source of the GPU's. Without a key, the range rests while all others sleep. */
static void let_rest(ffm_range *range)
{
    range->key = ffm_keys_take(range->writes_only);
    if (range->key != 0) {
        ffm_ranges_disarm(range, FFM_RANGE_KEYED);
        return;
    }
    if (ffm_threads_alone() == 0)
        return;
    resting_for = &here;
    ffm_ranges_disarm(range, FFM_RANGE_RESTING);
}

/* A touch of a range that stays armed for others. */
static void touch_among_others(uint32_t place, uint32_t kind, uint64_t start, uint64_t time, uint32_t stack)
{
    ffm_range *range = ffm_ranges_at(place);
    if ((range->touched & bit_here()) == 0) {
        range->touched |= bit_here();
        ffm_ranges_unsettle(range);
        ffm_access_record(range, kind, 0, start, time, stack);
    } else if (is_worn(range)) {
        ffm_access_record(range, FFM_ACCESS_UNWATCHED, FFM_ACCESS_LAST, start, time, stack);
        ffm_ranges_remove(place);
        return;
    }
    let_rest(range);
}

/* Whether this use is what its habit expects. */
static void tell_habit(ffm_range *range, uint32_t kind, uint64_t start)
{
    if (range->habit == 0 || range->told)
        return;
    range->told = true;
    const ffm_thread *thread = ffm_thread_peek();
    if (kind == FFM_ACCESS_RELEASED || range->state == FFM_RANGE_PREPARED || !range->covered || range->inherited != 0 ||
        thread == NULL || thread->number != range->waiter) {
        ffm_habit_all_broken(range->habit);
        return;
    }
    ffm_together_used(range);
    if (range->covers > 1) {
        ffm_habit_broken(range->habit);
        return;
    }
    ffm_habit_kept(range->habit, range->waited_at);
    if (range->launch)
        ffm_habit_used_at(range->habit, start < range->start ? range->start : start);
}

bool ffm_access_others_may_wait(void)
{
    return ffm_waiters_several() || (others_matter && ffm_threads_several());
}

/* [start, end) of the armed range at an index is touched; the range may be removed from the table. */
static void touch(uint32_t place, uint32_t kind, uint64_t start, uint64_t end, uint64_t time, uint32_t stack)
{
    ffm_range *range = ffm_ranges_at(place);
    range->unchanged = false;
    tell_habit(range, kind, start);
    if (range->probe) {
        ffm_ranges_remove(place);
        return;
    }
    if (range->state == FFM_RANGE_PREPARED) { /* the access relies on no wait */
        ffm_extents_opened(range);
        return;
    }
    if (start < range->start)
        start = range->start;
    if (end > range->end)
        end = range->end;
    if (range->rest) {
        if (kind != FFM_ACCESS_RELEASED) /* released memory is cut out, untouched */
            ffm_extents_touch(place, start, end);
        return;
    }
    if (kind != FFM_ACCESS_RELEASED)
        ffm_extents_first_touch(place, start, end);
    else if (start > range->start || end < range->end)
        ffm_extents_lose(range);
    range = ffm_ranges_at(place);
    if (kind != FFM_ACCESS_RELEASED && others_may_follow(range)) {
        touch_among_others(place, kind, start, time, stack);
        return;
    }
    const bool last = range->covered && !ffm_access_others_may_wait();
    if (last || kind == FFM_ACCESS_RELEASED || range->inherited != 0) {
        ffm_access_record(range, kind, FFM_ACCESS_LAST, start, time, stack);
        ffm_ranges_remove(place);
        return;
    }
    ffm_access_record(range, kind, 0, start, time, stack);
    range->granule = 0;
    if (range->covered) {
        range->done |= range->waited;
        ffm_ranges_disarm(range, FFM_RANGE_DORMANT);
    } else {
        ffm_ranges_disarm(range, FFM_RANGE_PENDING);
    }
}

static uint32_t presumed_kind(const ffm_range *range)
{
    return range->writes_only ? FFM_ACCESS_WRITE : FFM_ACCESS_READ;
}

void ffm_access_record_presumed(const ffm_range *range, uint32_t flags)
{
    ffm_access_record(range, presumed_kind(range), FFM_ACCESS_PRESUMED | flags, range->start, ffm_now(), 0);
}

static void presume(uint32_t place, uint32_t kind)
{
    ffm_range *range = ffm_ranges_at(place);
    const bool last = !ffm_access_others_may_wait();
    range->told = true;
    ffm_access_record(range, kind, FFM_ACCESS_PRESUMED | (last ? FFM_ACCESS_LAST : 0), range->start, ffm_now(), 0);
    if (last) {
        ffm_ranges_remove(place);
        return;
    }
    range->done |= range->waited;
    ffm_ranges_disarm(range, FFM_RANGE_DORMANT);
}

void ffm_access_presume(uint32_t place)
{
    presume(place, presumed_kind(ffm_ranges_at(place)));
}

void ffm_access_presume_unwatched(uint32_t place)
{
    presume(place, FFM_ACCESS_UNWATCHED);
}

void ffm_access_lost(uint32_t place, uint64_t time)
{
    ffm_range *range = ffm_ranges_at(place);
    ffm_extents_lose(range);
    if (!range->rest && !range->probe)
        ffm_access_record(range, FFM_ACCESS_UNWATCHED, FFM_ACCESS_LAST, range->start, time, 0);
    ffm_ranges_remove(place);
}

/* Whether others could touch the range unseen. A system call of this thread leaves it nothing to touch with. */
static bool is_unseen(const ffm_range *range)
{
    return range->state == FFM_RANGE_OPEN && (range->forking || !ffm_threads_alone_since(range->alone));
}

void ffm_access_over(uint32_t place)
{
    if (is_unseen(ffm_ranges_at(place)))
        ffm_access_lost(place, ffm_now());
    else
        ffm_ranges_remove(place);
}

void ffm_access_over_in(uint64_t start, uint64_t end)
{
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        const ffm_range *range = ffm_ranges_at(place);
        if (is_unseen(range) && ffm_box_touches(&range->box, start, end))
            ffm_access_lost(place, ffm_now());
    }
}

/* All accesses of an instruction or a call have been seen: what joins those that were first counts as used, too. */
static void presume_joining(void)
{
    if (!ffm_together_begins() || ffm_ranges_joining() == 0 || ffm_access_others_may_wait())
        return;
    ffm_page refused;
    ffm_ranges_gather();
    /* The newest ones are at the end of the table. */
    uint32_t left = ffm_ranges_joining();
    for (uint32_t i = ffm_ranges_count(); i > 0 && left > 0; i--) {
        left -= ffm_ranges_at(i - 1)->joins;
        if (ffm_together_counts(ffm_ranges_at(i - 1)))
            ffm_access_presume(i - 1);
    }
    ffm_ranges_gathered(&refused); /* what cannot be opened is stepped over */
}

void ffm_access_seen(uint64_t start, uint64_t end, bool writing, uint64_t time, uint32_t stack)
{
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        if (ffm_range_forbids(ffm_ranges_at(place), start, end, writing))
            touch(place, writing ? FFM_ACCESS_WRITE : FFM_ACCESS_READ, start, end, time, stack);
    }
    presume_joining();
}

void ffm_access_unseen(uint64_t start, uint64_t end, bool writing, uint32_t kind, uint32_t stack)
{
    uint64_t now = ffm_now();
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        if (ffm_range_forbids(ffm_ranges_at(place), start, end, writing))
            touch(place, kind, start, end, now, stack);
    }
    presume_joining();
}

bool ffm_access_forbidden(uint64_t start, uint64_t end, bool writing)
{
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++)
        if (ffm_range_forbids(ffm_ranges_at(ffm_nearby_place(&nearby, i)), start, end, writing))
            return true;
    return false;
}

bool ffm_access_first(uint64_t start, uint64_t end, bool writing)
{
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (!range->rest && !range->probe && range->state != FFM_RANGE_PREPARED && (range->touched & bit_here()) == 0 &&
            ffm_range_forbids(range, start, end, writing))
            return true;
    }
    return false;
}

void ffm_access_give_up(const ffm_page *page, uint64_t time)
{
    const ffm_nearby nearby = ffm_ranges_nearby(page->start, page->start + page->bytes);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        if (ffm_range_shares_page(ffm_ranges_at(place), page->start, page->start + page->bytes))
            ffm_access_lost(place, time);
    }
}

static __thread uint32_t forking __attribute__((tls_model("initial-exec")));

void ffm_accesses_before_fork(void)
{
    forking = thread_of(ffm_thread_peek());
}

void ffm_accesses_reopen(void)
{
    ffm_packer_release(&accesses);
    accesses = (ffm_packer){0};
}

void ffm_accesses_after_fork(void)
{
    const uint64_t now = ffm_now();
    for (uint32_t i = 0; i < ffm_ranges_count(); i++)
        if (ffm_ranges_at(i)->inherited == 0) { /* first by this process, not by one that it was forked from */
            ffm_ranges_at(i)->inherited = now;
            ffm_ranges_at(i)->forked_by = forking;
        }
}
