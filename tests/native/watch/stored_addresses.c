/* What `stored_addresses.c` needs, with a clock that goes on only while words are looked at and when told to. */
#include "stored_addresses.h"

#include <stddef.h>

#include "clock.h"
#include "guarded.h"
#include "peek.h"
#include "ranges.h"

static uint64_t now = 1, cost_of_piece; /* ns */
static uint64_t next, end;              /* what is looked at is the bytes from a block's begin to here */
static int in_order;

static int tell(clockid_t clock, struct timespec *time)
{
    (void)clock;
    time->tv_sec = (time_t)(now / 1000000000);
    time->tv_nsec = (long)(now % 1000000000);
    return 0;
}

int (*ffm_clock)(clockid_t, struct timespec *) = tell;

uint32_t ffm_blocks_count(void)
{
    return 2;
}

uint64_t ffm_blocks_changes(void)
{
    return 0;
}

ffm_addresses ffm_blocks_scan_within(uint32_t place, const void *words, uint64_t bytes)
{
    (void)place;
    in_order &= (uint64_t)words == next && next + bytes <= end;
    next += bytes;
    now += cost_of_piece;
    return FFM_KNOWN_ADDRESS;
}

ffm_box ffm_peek(const ffm_box *box)
{
    return *box;
}

void ffm_peek_over(void) {}

bool ffm_guarded(void (*action)(void *context), void *context, uint64_t start, uint64_t behind)
{
    (void)start;
    (void)behind;
    action(context);
    return true;
}

void ffm_ranges_lock(void) {}

void ffm_ranges_unlock(void) {}

ffm_nearby ffm_ranges_nearby(uint64_t start, uint64_t behind)
{
    (void)start;
    (void)behind;
    return (ffm_nearby){0};
}

ffm_range *ffm_ranges_at(uint32_t place)
{
    (void)place;
    return NULL;
}

/* A launch, so long after what came before. Sets how many bytes were looked at, and the time that took. */
int launch(uint64_t later, uint64_t cost, uint32_t place, uint64_t bytes, int managed, uint64_t *looked, uint64_t *took)
{
    const uint64_t start = (uint64_t)(place + 1) << 40;
    const ffm_block block = {.start = start, .bytes = bytes, .device = start, .managed = managed != 0};
    now += later;
    cost_of_piece = cost;
    next = start;
    end = start + bytes;
    in_order = 1;
    const uint64_t before = now;
    const int stored = (int)ffm_stored_addresses_in(place, &block);
    *looked = next - start;
    *took = now - before;
    return in_order ? stored : -1;
}
