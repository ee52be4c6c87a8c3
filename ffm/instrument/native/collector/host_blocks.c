#include "host_blocks.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

#include "intervals.h"
#include "new_pages.h"
#include "sink.h"
#include "stacks.h"

enum { BLOCKS = 1 << 20, BINS = 1 << 16, REMEMBERED = 4, LONGEST = 64, USES_KNOWN = 4 };

enum { DRIVER = UINT16_MAX }; /* in an allocator's place */

/* Indices into `blocks` start at 1; 0 means none. A block is in a list by its start, and in the tree of the ranges. */
typedef struct {
    uint64_t start, bytes;
    uint32_t next;
    uint32_t number; /* of its record, from 1; 0 if no transfer has used it yet */
    uint32_t users[REMEMBERED];
    uint16_t allocator, depth;
    uint64_t frames[FFM_HOST_BLOCK_FRAMES];
} block;

static struct {
    bool locked;
    block *blocks;
    uint32_t made, unused; /* indices handed out, and the list of those returned */
    uint32_t by_start[BINS];
    ffm_intervals ranges; /* of the blocks, by their indices */
    uint32_t recorded;
    uint32_t changes; /* how often a block came or went */
    ffm_stream records, releases, uses;
} host;

/* The calling thread's last uses, the latest first. Each is a hash of its address, its stack and `changes`; two
 * different uses share a hash once in 2^64. */
static __thread uint64_t uses_known[USES_KNOWN] __attribute__((tls_model("initial-exec")));

/* A lock that needs nothing from the C library, because allocators run at any time. */
static void lock(void)
{
    while (__atomic_test_and_set(&host.locked, __ATOMIC_ACQUIRE))
        sched_yield();
}

static void unlock(void)
{
    __atomic_clear(&host.locked, __ATOMIC_RELEASE);
}

/* Two blocks hardly ever start closer together than the smallest block is long. And memory that is freed near other
 * memory is looked up near it, in a cache line that is there already. */
static uint32_t *bin_of_start(uint64_t start)
{
    return &host.by_start[start / FFM_HOST_BLOCK_LEAST * 0x9E3779B97F4A7C15u >> 48];
}

/* Locked. */
static void change(void)
{
    __atomic_store_n(&host.changes, host.changes + 1, __ATOMIC_RELAXED);
}

/* Locked. */
static void take_out(block *gone)
{
    change();
    uint32_t place = (uint32_t)(gone - host.blocks), *link = bin_of_start(gone->start);
    while (*link != place)
        link = &host.blocks[*link].next;
    *link = gone->next;
    ffm_intervals_remove(&host.ranges, place);
    gone->start = 0;
    gone->next = host.unused;
    host.unused = place;
}

/* Locked. */
static block *starting_at(uint64_t start)
{
    uint32_t place = *bin_of_start(start);
    while (place != 0 && host.blocks[place].start != start)
        place = host.blocks[place].next;
    return place == 0 ? NULL : &host.blocks[place];
}

/* Locked. The same memory is never given out twice at a time: blocks that start in this range were freed unseen. So of
 * the blocks around an address, the one that starts last is also the latest. */
static void take_out_stale(uint64_t start, uint64_t bytes)
{
    uint32_t place;
    while ((place = ffm_intervals_from(&host.ranges, start)) != 0 && host.blocks[place].start - start < bytes)
        take_out(&host.blocks[place]);
}

/* Locked. A block that is in use nowhere; NULL if there is no room. */
static block *room(void)
{
    if (host.ranges.nodes == NULL)
        host.ranges.nodes = ffm_new_pages((BLOCKS + 1) * sizeof *host.ranges.nodes);
    if (host.blocks == NULL)
        __atomic_store_n(&host.blocks, ffm_new_pages((BLOCKS + 1) * sizeof *host.blocks), __ATOMIC_RELEASE);
    if (host.ranges.nodes == NULL || host.blocks == NULL)
        return NULL;
    uint32_t place = host.unused;
    if (place != 0)
        host.unused = host.blocks[place].next;
    else if (host.made < BLOCKS)
        place = ++host.made;
    return place == 0 ? NULL : &host.blocks[place];
}

void ffm_host_blocks_mapped_by_driver(uint64_t start, uint64_t bytes)
{
    ffm_host_blocks_allocated(start, bytes, DRIVER, &(const uint64_t){0}, 0);
}

void ffm_host_blocks_allocated(uint64_t start, uint64_t bytes, uint32_t allocator, const uint64_t *frames,
                               uint32_t depth)
{
    lock();
    take_out_stale(start, bytes);
    block *fresh = room();
    if (fresh != NULL) {
        change();
        uint32_t place = (uint32_t)(fresh - host.blocks);
        uint32_t *by_start = bin_of_start(start);
        if (depth > FFM_HOST_BLOCK_FRAMES)
            depth = FFM_HOST_BLOCK_FRAMES;
        fresh->number = 0;
        fresh->bytes = bytes;
        fresh->allocator = (uint16_t)allocator;
        fresh->depth = (uint16_t)depth;
        memset(fresh->users, 0, sizeof fresh->users);
        memcpy(fresh->frames, frames, depth * sizeof *frames);
        fresh->start = start;
        fresh->next = *by_start;
        ffm_intervals_add(&host.ranges, place, start, start + bytes);
        __atomic_store_n(by_start, place, __ATOMIC_RELEASE);
    }
    unlock();
}

/* Without the lock, because nearly all freed memory was never remembered. A block in the list stays there until its
 * owner, the caller, frees it. Another block that moves meanwhile can hide it; then its release remains unknown. */
bool ffm_host_blocks_may_hold(uint64_t start)
{
    uint32_t place = __atomic_load_n(bin_of_start(start), __ATOMIC_ACQUIRE);
    for (int i = 0; place != 0 && i < LONGEST; i++) {
        const block *at = &__atomic_load_n(&host.blocks, __ATOMIC_ACQUIRE)[place];
        if (__atomic_load_n(&at->start, __ATOMIC_RELAXED) == start)
            return true;
        place = __atomic_load_n(&at->next, __ATOMIC_RELAXED);
    }
    return false;
}

bool ffm_host_blocks_forget(uint64_t start, uint32_t *number)
{
    lock();
    block *gone = starting_at(start);
    *number = gone == NULL ? 0 : gone->number;
    if (gone != NULL)
        take_out(gone);
    unlock();
    return *number != 0;
}

/* Stacks are numbered without the lock, because an allocation may want it while holding the loader's lock. */
void ffm_host_blocks_released(uint32_t number, uint32_t allocator, const uint64_t *frames, uint32_t depth)
{
    uint32_t stack = ffm_stack_number(frames, depth);
    lock();
    ffm_host_release *out = ffm_sink_reserve(&host.releases, FFM_CHUNK_HOST_RELEASES, 0, sizeof *out);
    if (out != NULL) {
        *out = (ffm_host_release){.number = number, .stack = stack, .allocator = allocator};
        ffm_sink_commit(&host.releases, sizeof *out);
    }
    unlock();
}

static void record(const block *used)
{
    uint32_t stack = ffm_stack_number(used->frames, used->depth);
    lock();
    ffm_host_block *out = ffm_sink_reserve(&host.records, FFM_CHUNK_HOST_BLOCKS, 0, sizeof *out);
    if (out != NULL) {
        *out = (ffm_host_block){
            .bytes = used->bytes, .number = used->number, .stack = stack, .allocator = used->allocator};
        ffm_sink_commit(&host.records, sizeof *out);
    }
    unlock();
}

static void record_use(uint32_t number, uint32_t stack)
{
    lock();
    ffm_host_use *out = ffm_sink_reserve(&host.uses, FFM_CHUNK_HOST_USES, 0, sizeof *out);
    if (out != NULL) {
        *out = (ffm_host_use){.number = number, .stack = stack};
        ffm_sink_commit(&host.uses, sizeof *out);
    }
    unlock();
}

static bool is_user(const block *of, uint32_t stack)
{
    for (int i = 0; i < REMEMBERED; i++)
        if (of->users[i] == stack)
            return true;
    return false;
}

static void look_up(uint64_t address, uint32_t stack)
{
    lock();
    uint32_t place = host.ranges.root == 0 ? 0 : ffm_intervals_around(&host.ranges, address);
    block *found = &host.blocks[place];
    if (place == 0 || found->allocator == DRIVER || is_user(found, stack)) {
        unlock();
        return;
    }
    bool first = found->number == 0;
    if (first)
        found->number = ++host.recorded;
    memmove(found->users + 1, found->users, (REMEMBERED - 1) * sizeof *found->users);
    found->users[0] = stack;
    const block used = *found;
    unlock();
    if (first)
        record(&used);
    record_use(used.number, stack);
}

static uint64_t use_of(uint64_t address, uint32_t stack)
{
    const uint64_t mixed = (address * 0x9E3779B97F4A7C15u) ^ (stack * 0xD1B54A32D192ED03u);
    return (mixed ^ mixed >> 32) * 0x9E3779B97F4A7C15u + __atomic_load_n(&host.changes, __ATOMIC_RELAXED);
}

/* A signal handler may replace words at any time. */
static bool is_known(uint64_t use)
{
    for (int i = 0; i < USES_KNOWN; i++)
        if (*(volatile uint64_t *)&uses_known[i] == use)
            return true;
    return false;
}

void ffm_host_blocks_used(uint64_t address, uint32_t stack)
{
    const uint64_t use = use_of(address, stack);
    if (is_known(use))
        return;
    look_up(address, stack);
    memmove(uses_known + 1, uses_known, (USES_KNOWN - 1) * sizeof *uses_known);
    uses_known[0] = use;
}

void ffm_host_blocks_after_fork(void)
{
    ffm_sink_release(&host.records);
    ffm_sink_release(&host.releases);
    ffm_sink_release(&host.uses);
    host.records = host.releases = host.uses = (ffm_stream){0};
    host.recorded = 0;
    if (host.locked) { /* by a thread that no longer exists, in the middle of a change: the parent's allocations are
                          forgotten */
        memset(host.by_start, 0, sizeof host.by_start);
        host.ranges.root = 0;
        host.made = host.unused = 0;
    }
    change();
    for (uint32_t place = 1; place <= host.made; place++) {
        host.blocks[place].number = 0;
        memset(host.blocks[place].users, 0, sizeof host.blocks[place].users);
    }
    unlock();
}
