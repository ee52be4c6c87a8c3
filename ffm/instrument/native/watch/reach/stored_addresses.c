#include "stored_addresses.h"

#include <stddef.h>
#include <string.h>

#include "guarded.h"
#include "peek.h"

enum { PLACES = 16 * 64, SMALL = 1 << 12, MOST = 1 << 20, FIRST_LAUNCHES = 16 };

/* Of the blocks with these indices: where each began, how many launches could access it, and whether an address was
 * found there. Threads may count at the same time, and then miss one. */
static struct {
    uint64_t start;
    uint32_t launches;
    bool table;
} seen[PLACES];

typedef struct {
    uint32_t place;
    ffm_box box;
    ffm_addresses found;
} looking;

static bool is_due(uint32_t place, const ffm_block *block)
{
    if ((block->bytes <= SMALL && !block->managed) || place >= PLACES)
        return true;
    if (__atomic_load_n(&seen[place].start, __ATOMIC_RELAXED) != block->start) {
        __atomic_store_n(&seen[place].launches, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&seen[place].table, false, __ATOMIC_RELAXED);
        __atomic_store_n(&seen[place].start, block->start, __ATOMIC_RELAXED);
    }
    const uint32_t launches = __atomic_add_fetch(&seen[place].launches, 1, __ATOMIC_RELAXED);
    if (__atomic_load_n(&seen[place].table, __ATOMIC_RELAXED) && !block->managed)
        return true;
    return launches <= FIRST_LAUNCHES || (launches & (launches - 1)) == 0;
}

static void look(void *opaque)
{
    looking *at = opaque;
    at->found = ffm_blocks_scan_within(at->place, (const void *)at->box.address, at->box.width);
}

bool ffm_stored_addresses_in(uint32_t place, const ffm_block *block)
{
    if (ffm_blocks_count() < 2 || !is_due(place, block))
        return false;
    const uint64_t bytes = block->bytes < MOST ? block->bytes : MOST;
    const ffm_box whole = {block->start, bytes, bytes, 1, bytes, 1, true};
    looking at = {.place = place, .box = ffm_peek(&whole)};
    ffm_guarded(look, &at, at.box.address, ffm_box_end(&at.box));
    ffm_peek_over();
    if (at.found != FFM_NO_ADDRESS && place < PLACES)
        __atomic_store_n(&seen[place].table, true, __ATOMIC_RELAXED);
    return at.found == FFM_NEW_ADDRESS;
}

void ffm_stored_addresses_after_fork(void)
{
    memset(seen, 0, sizeof seen);
}
