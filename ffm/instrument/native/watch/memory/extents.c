#include "extents.h"

#include <stddef.h>

#include "blocks.h"
#include "clock.h"
#include "packing.h"
#include "records.h"
#include "sink.h"
#include "thread.h"
#include "traced.h"
#include "unsettled.h"

enum { GRANULES = 1024 };  /* most granules of one download */
enum { AT_ONCE = 256 };    /* ranges that are remainders of downloads; each fault searches them */
enum { SHARE = 16 };       /* share of the time since the start that may be spent on watching downloads */
enum { BEGIN = 20000000 }; /* nanoseconds that may be spent in any case */

static struct {
    bool open;
    ffm_packer records;
    uint64_t opened, cost, spent; /* nanoseconds */
} extents;

static void record(const ffm_range *range, uint32_t kind, uint64_t start, uint64_t end)
{
    if (start >= end)
        return;
    const ffm_extent extent = {.operation = range->operation,
                               .start = start,
                               .bytes = end - start,
                               .operation_thread = range->thread,
                               .kind = kind};
    ffm_pack_record(&extents.records, FFM_CHUNK_EXTENTS, 0, kind, &extent);
}

void ffm_extents_open(uint64_t fault_cost)
{
    /* Another rank may fetch downloaded data without a touch or system call of this one. */
    extents.open = ffm_sink_rank() < 0;
    extents.opened = ffm_now();
    extents.cost = 2 * fault_cost; /* there and back */
}

/* A touch has been handled since a time. */
static void spend(uint64_t since)
{
    if (extents.cost != 0)
        extents.spent += extents.cost + (ffm_now() - since);
}

/* Nanoseconds that may have been spent by now. */
static uint64_t budget(void)
{
    return BEGIN + (ffm_now() - extents.opened) / SHARE;
}

/* Half of it is left to those that are being watched: what is not watched to its end has cost something for nothing. */
static bool can_begin(uint64_t faults)
{
    return extents.spent + faults * extents.cost <= budget() / 2;
}

uint32_t ffm_extents_granule(const ffm_range *range)
{
    const ffm_box *box = &range->box;
    if (!extents.open || box->height > 1 || box->depth > 1)
        return 0;
    if (ffm_trace_on())
        return 1;
    uint64_t granule = FFM_RANGES_PAGE;
    while (box->width / granule >= GRANULES && granule < UINT32_MAX / 2)
        granule *= 2;
    return can_begin(box->width / granule + 1) ? (uint32_t)granule : 0;
}

static bool is_pinned(uint64_t address)
{
    return ffm_blocks_hold(address) && !ffm_blocks_managed(address);
}

/* Other memory than pinned is left open: the driver may write it on the CPU. What was kept is protected already. */
static bool protect_in_flight(ffm_range *range)
{
    return is_pinned(range->start) &&
           (range->state == FFM_RANGE_PREPARED || (can_begin(1) && ffm_ranges_prepare(range)));
}

void ffm_extents_guard(ffm_range *range)
{
    range->intact = extents.open && (!range->in_flight || protect_in_flight(range));
}

void ffm_extents_opened(ffm_range *range)
{
    const uint64_t since = ffm_now();
    ffm_ranges_disarm(range, FFM_RANGE_PENDING);
    if (range->download)
        spend(since);
}

void ffm_extents_end(uint64_t start, uint64_t end)
{
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (!range->intact || range->covered || start >= range->end || range->start >= end)
            continue;
        if (start <= range->start && range->end <= end)
            record(range, FFM_EXTENT_INTACT, range->start, range->end);
        range->intact = false;
    }
}

static bool can_keep(const ffm_range *range, const ffm_box *box)
{
    return range->download && !range->rest && range->kept == 0 && range->inherited == 0 &&
           (range->state == FFM_RANGE_PREPARED || range->state == FFM_RANGE_ARMED) && ffm_box_same(&range->box, box);
}

/* The only range that has something in common with a box; NULL if there are none or several. */
static ffm_range *only_range_in(const ffm_box *box)
{
    ffm_range *found = NULL;
    const ffm_nearby nearby = ffm_ranges_nearby(box->address, ffm_box_end(box));
    for (uint32_t i = 0; i < nearby.count; i++) {
        ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (!ffm_box_touches(&range->box, box->address, ffm_box_end(box)))
            continue;
        if (found != NULL)
            return NULL;
        found = range;
    }
    return found;
}

bool ffm_extents_keep(const ffm_box *box, bool delivered)
{
    if (ffm_trace_on() || !extents.open || !(delivered || is_pinned(box->address)))
        return false;
    ffm_range *range = only_range_in(box);
    if (range == NULL || !can_keep(range, box))
        return false;
    ffm_extents_end(range->start, range->end);
    range->intact = range->followed = false;
    range->granule = 0;
    range->kept = ffm_thread_peek()->number + 1;
    ffm_ranges_keep(range);
    return true;
}

/* At an address. */
static uint32_t place_of_kept(uint64_t address, uint32_t thread)
{
    const ffm_nearby nearby = ffm_ranges_nearby(address, address + 1);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (range->kept == thread + 1 && range->start == address)
            return ffm_nearby_place(&nearby, i);
    }
    return FFM_NO_PLACE;
}

ffm_range *ffm_extents_take_kept(const ffm_range *range)
{
    const uint32_t place = place_of_kept(range->box.address, range->thread);
    if (place == FFM_NO_PLACE || ffm_ranges_at(place)->state != FFM_RANGE_PREPARED ||
        !ffm_box_same(&ffm_ranges_at(place)->box, &range->box))
        return NULL;
    ffm_ranges_replace(place, range);
    return ffm_ranges_at(place);
}

void ffm_extents_kept_over(uint64_t address, uint32_t thread)
{
    const uint32_t place = place_of_kept(address, thread);
    if (place != FFM_NO_PLACE)
        ffm_ranges_remove(place);
}

void ffm_extents_begin(ffm_range *range, bool first)
{
    if (range->intact && first)
        record(range, FFM_EXTENT_INTACT, range->start, range->end);
    if (range->granule == 0 || range->followed)
        return;
    if (range->granule < range->page)
        range->granule = range->page;
    range->followed = true;
    record(range, FFM_EXTENT_FOLLOWED, range->start, range->end);
}

void ffm_extents_lose(ffm_range *range)
{
    if (range->followed || (range->intact && range->covered))
        record(range, FFM_EXTENT_LOST, range->start, range->end);
    range->followed = range->intact = false;
    range->granule = 0;
}

/* Widen [*start, *end) to granules, within the range. */
static void widen(const ffm_range *range, uint64_t *start, uint64_t *end)
{
    const uint64_t granule = range->granule;
    *start = *start / granule * granule;
    *end = (*end + granule - 1) / granule * granule;
    if (*start < range->start)
        *start = range->start;
    if (*end > range->end)
        *end = range->end;
}

static bool keep(const ffm_range *range, uint64_t start, uint64_t end)
{
    if (start >= end)
        return true;
    ffm_range rest = *range;
    rest.box = (ffm_box){start, end - start, end - start, 1, end - start, 1, true};
    rest.rest = true;
    rest.intact = false;
    return ffm_ranges_add_armed(&rest);
}

void ffm_extents_first_touch(uint32_t place, uint64_t start, uint64_t end)
{
    ffm_range *range = ffm_ranges_at(place);
    if (!range->followed)
        return;
    const ffm_range whole = *range;
    range->followed = false; /* from now on, other ranges represent it */
    range->granule = 0;
    /* Pages at both ends may contain other data, over which the program would have to be stepped for longer. */
    const uint64_t page = whole.page, first = (whole.start + page - 1) / page * page, last = whole.end / page * page;
    widen(&whole, &start, &end);
    if (first < last) {
        if (start < first)
            start = first;
        if (end > last)
            end = last;
        if (end < first)
            end = first;
        if (start > last)
            start = last;
    }
    if (first >= last) {
        record(&whole, FFM_EXTENT_TOUCHED, whole.start, whole.end);
        return;
    }
    record(&whole, FFM_EXTENT_TOUCHED, whole.start, first);
    record(&whole, FFM_EXTENT_TOUCHED, start, end);
    record(&whole, FFM_EXTENT_TOUCHED, last, whole.end);
    if (ffm_ranges_rests() >= AT_ONCE || !keep(&whole, first, start) || !keep(&whole, end, last))
        record(&whole, FFM_EXTENT_LOST, whole.start, whole.end);
}

void ffm_extents_touch(uint32_t place, uint64_t start, uint64_t end)
{
    ffm_range *range = ffm_ranges_at(place);
    const uint64_t since = ffm_now();
    widen(range, &start, &end);
    if (ffm_ranges_rests() >= 2 * AT_ONCE || extents.spent > budget()) {
        ffm_extents_lose(range);
        ffm_ranges_remove(place);
    } else {
        record(range, FFM_EXTENT_TOUCHED, start, end);
        ffm_ranges_cut_at(place, start, end);
    }
    spend(since);
}

void ffm_extents_used_by_gpu(uint64_t start, uint64_t end)
{
    if (!extents.open || ffm_ranges_count() == 0)
        return;
    ffm_ranges_lock();
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        ffm_range *range = ffm_ranges_at(place);
        if (start >= range->end || range->start >= end)
            continue;
        if (range->rest)
            ffm_extents_touch(place, start > range->start ? start : range->start, end < range->end ? end : range->end);
        else if (range->followed)
            record(range, FFM_EXTENT_TOUCHED, start > range->start ? start : range->start,
                   end < range->end ? end : range->end);
    }
    ffm_ranges_unlock();
}

void ffm_extents_lose_in(uint64_t start, uint64_t end)
{
    const ffm_nearby nearby = ffm_ranges_nearby(start, end);
    for (uint32_t i = 0; i < nearby.count; i++) {
        ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (start < range->end && range->start < end)
            ffm_extents_lose(range);
    }
}

void ffm_extents_before_fork(void)
{
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        ffm_extents_lose(range);
        if (range->rest)
            ffm_ranges_remove(i - 1);
    }
}

void ffm_extents_reopen(void)
{
    ffm_packer_release(&extents.records);
    extents.records = (ffm_packer){0};
}
