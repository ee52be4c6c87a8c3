#include "host_blocks.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "sink.h"
#include "stacks.h"

enum { BLOCKS = 1 << 20, BINS = 1 << 16, REGION_BITS = 21, REMEMBERED = 4, LONGEST = 64 };

/* Indices into `blocks` start at 1; 0 means none. A block is in two lists: by its start, and by the region where it
 * starts. */
typedef struct {
    uint64_t start, bytes;
    uint32_t next, next_in_region, previous_in_region;
    uint32_t number; /* of its record, from 1; 0 if no transfer has used it yet */
    uint32_t users[REMEMBERED];
    uint16_t allocator, depth;
    uint64_t frames[FFM_HOST_BLOCK_FRAMES];
} block;

static struct {
    bool locked;
    block *blocks;
    uint32_t made, unused; /* indices handed out, and the list of those returned */
    uint32_t by_start[BINS], by_region[BINS];
    uint64_t largest;
    uint32_t recorded;
    ffm_stream records, releases, uses;
} host;

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

static uint32_t *bin_of_start(uint64_t start)
{
    return &host.by_start[(start >> 4) * 0x9E3779B97F4A7C15u >> 48];
}

static uint32_t *bin_of_region(uint64_t region)
{
    return &host.by_region[region * 0x9E3779B97F4A7C15u >> 48];
}

/* Locked. */
static void take_out(block *gone)
{
    uint32_t place = (uint32_t)(gone - host.blocks), *link = bin_of_start(gone->start);
    while (*link != place)
        link = &host.blocks[*link].next;
    *link = gone->next;
    if (gone->previous_in_region != 0)
        host.blocks[gone->previous_in_region].next_in_region = gone->next_in_region;
    else
        *bin_of_region(gone->start >> REGION_BITS) = gone->next_in_region;
    if (gone->next_in_region != 0)
        host.blocks[gone->next_in_region].previous_in_region = gone->previous_in_region;
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

/* Locked. The block that contains an address; if there are several, all but one of which were freed unseen, the
 * latest. */
static block *around(uint64_t address)
{
    uint64_t region = address >> REGION_BITS, last = (address - host.largest) >> REGION_BITS;
    for (uint64_t at = region; address >= host.largest && at >= last && at <= region; at--)
        for (uint32_t place = *bin_of_region(at); place != 0; place = host.blocks[place].next_in_region)
            if (address - host.blocks[place].start < host.blocks[place].bytes)
                return &host.blocks[place];
    return NULL;
}

/* Locked. Reserve address space for all blocks, whose pages are committed on first use; NULL if there is no room. */
static block *room(void)
{
    if (host.blocks == NULL) {
        void *pages = mmap(NULL, (BLOCKS + 1) * sizeof *host.blocks, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED)
            return NULL;
        __atomic_store_n(&host.blocks, pages, __ATOMIC_RELEASE);
    }
    uint32_t place = host.unused;
    if (place != 0)
        host.unused = host.blocks[place].next;
    else if (host.made < BLOCKS)
        place = ++host.made;
    return place == 0 ? NULL : &host.blocks[place];
}

void ffm_host_blocks_allocated(uint64_t start, uint64_t bytes, uint32_t allocator, const uint64_t *frames,
                               uint32_t depth)
{
    lock();
    block *stale = starting_at(start); /* freed in a way that was not observed */
    if (stale != NULL)
        take_out(stale);
    block *fresh = room();
    if (fresh != NULL) {
        uint32_t place = (uint32_t)(fresh - host.blocks);
        uint32_t *by_start = bin_of_start(start), *by_region = bin_of_region(start >> REGION_BITS);
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
        fresh->previous_in_region = 0;
        fresh->next_in_region = *by_region;
        if (*by_region != 0)
            host.blocks[*by_region].previous_in_region = place;
        *by_region = place;
        __atomic_store_n(by_start, place, __ATOMIC_RELEASE);
        if (bytes > host.largest)
            host.largest = bytes;
    }
    unlock();
}

/* Without the lock, because nearly all freed memory was never remembered. A block in the list stays there until its
 * owner, the caller, frees it. Another block that moves meanwhile can hide it; then its release remains unknown. */
static bool may_be_known(uint64_t start)
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
    if (!may_be_known(start))
        return false;
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

void ffm_host_blocks_used(uint64_t address, uint32_t stack)
{
    lock();
    block *found = around(address);
    if (found == NULL || is_user(found, stack)) {
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
        memset(host.by_region, 0, sizeof host.by_region);
        host.made = host.unused = 0;
    }
    for (uint32_t place = 1; place <= host.made; place++) {
        host.blocks[place].number = 0;
        memset(host.blocks[place].users, 0, sizeof host.blocks[place].users);
    }
    unlock();
}
