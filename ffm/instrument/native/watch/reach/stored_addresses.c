#include "stored_addresses.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "clock.h"
#include "guarded.h"
#include "peek.h"
#include "ranges.h"

enum { PLACES = 16 * 64, SMALL = 1 << 12, PIECE = 1 << 20, FIRST_LOOKS = 16 };

/* Looking may take one part in SHARE of the time since the first look, and this many nanoseconds more, so that short
 * runs are looked at throughout. */
enum { SHARE = 16, AT_FIRST = 50 * 1000 * 1000 };

/* Of the blocks with these indices: where each began, how often it was looked at, and what ffm_blocks_changes was at
 * the last look. Threads may count at the same time, and then miss one. */
static struct {
    uint64_t start, changes;
    uint32_t looks;
} seen[PLACES];

static uint64_t began, spent, looked_at; /* ns, ns, bytes */

typedef struct {
    uint32_t place;
    ffm_box box;
    ffm_addresses found;
} looking;

static void look(void *opaque)
{
    looking *at = opaque;
    at->found = ffm_blocks_scan_within(at->place, (const void *)at->box.address, at->box.width);
}

/* Whether the block is armed, and has been since the last look. If not, and it is armed now, then from now on. */
static bool is_unchanged(const ffm_box *whole)
{
    bool unchanged = false;
    ffm_ranges_lock();
    const ffm_nearby nearby = ffm_ranges_nearby(whole->address, ffm_box_end(whole));
    for (uint32_t i = 0; i < nearby.count; i++) {
        ffm_range *range = ffm_ranges_at(ffm_nearby_place(&nearby, i));
        if (range->state != FFM_RANGE_ARMED || !range->launch || !ffm_box_same(&range->box, whole))
            continue;
        unchanged = unchanged || range->unchanged;
        range->unchanged = true;
    }
    ffm_ranges_unlock();
    return unchanged;
}

/* No look took place: what the armed block contains is not known. */
static void forget(const ffm_box *whole)
{
    ffm_ranges_lock();
    const ffm_nearby nearby = ffm_ranges_nearby(whole->address, ffm_box_end(whole));
    for (uint32_t i = 0; i < nearby.count; i++)
        ffm_ranges_at(ffm_nearby_place(&nearby, i))->unchanged = false;
    ffm_ranges_unlock();
}

/* Whether nothing can be new. */
static bool is_known(uint32_t place, const ffm_box *whole, uint64_t changes)
{
    if (place >= PLACES)
        return false;
    const bool same = __atomic_load_n(&seen[place].start, __ATOMIC_RELAXED) == whole->address &&
                      __atomic_load_n(&seen[place].changes, __ATOMIC_RELAXED) == changes;
    return is_unchanged(whole) && same;
}

/* Whether there is time to look at so many bytes, which take as long as those before did. */
static bool is_time_for(uint64_t bytes, uint64_t now)
{
    const uint64_t before = __atomic_load_n(&looked_at, __ATOMIC_RELAXED);
    const uint64_t passed = __atomic_load_n(&spent, __ATOMIC_RELAXED);
    const double expected = before == 0 ? 0 : (double)passed / (double)before * (double)bytes;
    return (double)passed + expected <= AT_FIRST + (double)(now - began) / SHARE;
}

/* There is always time for small pinned blocks, and for the first piece of others in the first looks. */
static bool may_look(uint32_t place, const ffm_block *block, uint64_t now)
{
    if (block->bytes <= SMALL && !block->managed)
        return true;
    bool first = false;
    if (place < PLACES) {
        if (__atomic_load_n(&seen[place].start, __ATOMIC_RELAXED) != block->start)
            __atomic_store_n(&seen[place].looks, 0, __ATOMIC_RELAXED);
        first = __atomic_fetch_add(&seen[place].looks, 1, __ATOMIC_RELAXED) < FIRST_LOOKS;
    }
    return (first && block->bytes <= PIECE) || is_time_for(block->bytes, now);
}

static ffm_stored look_at_piece(uint32_t place, uint64_t start, uint64_t bytes)
{
    const uint64_t now = ffm_now();
    const ffm_box piece = {start, bytes, bytes, 1, bytes, 1, true};
    looking at = {.place = place, .box = ffm_peek(&piece)};
    const bool looked = ffm_guarded(look, &at, at.box.address, ffm_box_end(&at.box));
    ffm_peek_over();
    __atomic_fetch_add(&looked_at, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&spent, ffm_now() - now, __ATOMIC_RELAXED);
    if (!looked)
        return FFM_STORED_UNKNOWN;
    return at.found == FFM_NEW_ADDRESS ? FFM_STORED_NEW : FFM_STORED_NOTHING_NEW;
}

/* In pieces: each may be the last that there is time for. */
static ffm_stored look_at(uint32_t place, const ffm_block *block)
{
    ffm_stored stored = FFM_STORED_NOTHING_NEW;
    for (uint64_t offset = 0; offset < block->bytes && stored != FFM_STORED_UNKNOWN; offset += PIECE) {
        const uint64_t left = block->bytes - offset;
        const bool may = offset == 0 || is_time_for(0, ffm_now());
        const ffm_stored here =
            may ? look_at_piece(place, block->start + offset, left < PIECE ? left : PIECE) : FFM_STORED_UNKNOWN;
        stored = here == FFM_STORED_NOTHING_NEW ? stored : here;
    }
    return stored;
}

ffm_stored ffm_stored_addresses_in(uint32_t place, const ffm_block *block)
{
    const uint64_t changes = ffm_blocks_changes(), now = ffm_now();
    const ffm_box whole = {block->start, block->bytes, block->bytes, 1, block->bytes, 1, true};
    if (ffm_blocks_count() < 2 || is_known(place, &whole, changes))
        return FFM_STORED_NOTHING_NEW;
    if (__atomic_load_n(&began, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&began, now, __ATOMIC_RELAXED);
    const bool may = may_look(place, block, now);
    if (may && place < PLACES) {
        __atomic_store_n(&seen[place].changes, changes, __ATOMIC_RELAXED);
        __atomic_store_n(&seen[place].start, block->start, __ATOMIC_RELAXED);
    }
    const ffm_stored stored = may ? look_at(place, block) : FFM_STORED_UNKNOWN;
    if (stored == FFM_STORED_UNKNOWN)
        forget(&whole);
    return stored;
}

void ffm_stored_addresses_after_fork(void)
{
    memset(seen, 0, sizeof seen);
}
