#include "pool.h"

#include <string.h>

#include "allowance.h"
#include "counters.h"
#include "driver.h"
#include "new_pages.h"
#include "state.h"

enum { BLOCKS = 1 << 18, GRANULE = 512 };

/* Idle blocks are kept in bins of similar size: eight for each power of two. */
enum { BINS = 64 * 8, LOOKED_AT = 32 };

/* Indices into `blocks` start at 1; 0 means none. */
typedef struct {
    uint64_t base;
    size_t bytes, actual; /* `actual` may exceed `bytes`, the size that the program last asked for */
    uint64_t freed;       /* sequence number of its free; 0 while in use */
    uint32_t next, previous;
    ffm_pool_memory memory;
    bool shared; /* with others, who may write it */
} block;

static struct {
    block *blocks;       /* their addresses never change */
    uint32_t *by_base;   /* indices, sorted by base; idle blocks included */
    uint32_t count;      /* in by_base */
    uint32_t used;       /* indices handed out so far */
    uint32_t unused;     /* list of indices handed out and returned */
    uint32_t bins[BINS]; /* lists of idle blocks, last freed first */
    size_t live_bytes, peak_live_bytes, idle_bytes;
    size_t surplus; /* bytes of blocks in use beyond what was requested */
    uint64_t frees;
} pool;

/* The driver allocates in multiples of this (see "Device Memory Accesses" in the CUDA Programming Guide). */
static size_t rounded(size_t bytes)
{
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

static uint32_t bin_of(size_t bytes)
{
    if (bytes < 8)
        return 0;
    uint32_t power = 63 - (uint32_t)__builtin_clzll(bytes);
    return power * 8 + ((bytes >> (power - 3)) & 7);
}

/* How many blocks have a base not above the address. */
static uint32_t rank_of(uint64_t address)
{
    uint32_t low = 0, high = pool.count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (pool.blocks[pool.by_base[middle]].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The block that holds an address, or NULL. */
static block *around(uint64_t address)
{
    uint32_t rank = rank_of(address);
    block *found = rank == 0 ? NULL : &pool.blocks[pool.by_base[rank - 1]];
    return found != NULL && address - found->base < found->actual ? found : NULL;
}

static block *at(uint64_t base)
{
    block *found = around(base);
    return found != NULL && found->base == base ? found : NULL;
}

static void note_idle(void)
{
    ffm_counters->pool_bytes = pool.idle_bytes;
    if (pool.idle_bytes > ffm_counters->pool_peak_bytes)
        ffm_counters->pool_peak_bytes = pool.idle_bytes;
}

static void become_live(block *live, size_t bytes)
{
    live->freed = 0;
    live->bytes = bytes;
    pool.surplus += rounded(live->actual) - rounded(bytes);
    pool.live_bytes += rounded(live->actual);
    if (pool.live_bytes > pool.peak_live_bytes)
        pool.peak_live_bytes = pool.live_bytes;
}

static void end_live(const block *live)
{
    pool.live_bytes -= rounded(live->actual);
    pool.surplus -= rounded(live->actual) - rounded(live->bytes);
}

static void become_idle(block *idle)
{
    uint32_t place = (uint32_t)(idle - pool.blocks), *head = &pool.bins[bin_of(idle->actual)];
    idle->freed = ++pool.frees;
    idle->previous = 0;
    idle->next = *head;
    if (*head != 0)
        pool.blocks[*head].previous = place;
    *head = place;
    pool.idle_bytes += rounded(idle->actual);
    note_idle();
}

static void end_idle(const block *idle)
{
    if (idle->next != 0)
        pool.blocks[idle->next].previous = idle->previous;
    if (idle->previous != 0)
        pool.blocks[idle->previous].next = idle->next;
    else
        pool.bins[bin_of(idle->actual)] = idle->next;
    pool.idle_bytes -= rounded(idle->actual);
    note_idle();
}

/* Forget a block, idle or in use. */
static void drop(block *gone)
{
    if (gone->freed != 0)
        end_idle(gone);
    else
        end_live(gone);
    uint32_t rank = rank_of(gone->base) - 1;
    memmove(&pool.by_base[rank], &pool.by_base[rank + 1], (--pool.count - rank) * sizeof *pool.by_base);
    gone->next = pool.unused;
    pool.unused = (uint32_t)(gone - pool.blocks);
}

/* The best of a bin's blocks for a size. Among equals, the one freed last, because its memory is warm. */
static block *best_of(uint32_t bin, size_t bytes)
{
    block *best = NULL;
    uint32_t looked_at = 0;
    for (uint32_t place = pool.bins[bin]; place != 0 && looked_at++ < LOOKED_AT; place = pool.blocks[place].next) {
        block *candidate = &pool.blocks[place];
        if (candidate->actual == bytes)
            return candidate;
        if (candidate->actual > bytes && candidate->actual - bytes <= bytes / 8 &&
            (best == NULL || candidate->actual < best->actual))
            best = candidate;
    }
    return best;
}

bool ffm_pool_take(size_t bytes, uint64_t *address)
{
    pthread_mutex_lock(&ffm_lock);
    uint32_t bin = bin_of(bytes);
    block *best = best_of(bin, bytes);
    if (best == NULL && bin + 1 < BINS)
        best = best_of(bin + 1, bytes);
    if (best != NULL) {
        end_idle(best);
        become_live(best, bytes);
        *address = best->base;
    }
    pthread_mutex_unlock(&ffm_lock);
    return best != NULL;
}

static block *oldest_idle(void)
{
    block *oldest = NULL;
    for (uint32_t i = 0; i < pool.count; i++) {
        block *candidate = &pool.blocks[pool.by_base[i]];
        if (candidate->freed != 0 && (oldest == NULL || candidate->freed < oldest->freed))
            oldest = candidate;
    }
    return oldest;
}

/* Remove and return the idle block that was freed first, or 0 if the pool is within its limit. With the pool, the
 * program may hold as much as it did at its peak, and what corrections may take beyond that. Locked. */
static uint64_t excess(void)
{
    if (pool.idle_bytes + pool.live_bytes <= pool.peak_live_bytes)
        return 0;
    const size_t allowed = ffm_allowance_device(), kept = ffm_counters->cache_bytes;
    if (pool.idle_bytes + pool.live_bytes <= pool.peak_live_bytes + (allowed > kept ? allowed - kept : 0))
        return 0;
    block *oldest = oldest_idle();
    if (oldest == NULL)
        return 0;
    drop(oldest);
    return oldest->base;
}

static bool have_tables(void)
{
    if (pool.blocks != NULL)
        return true;
    size_t bytes = (BLOCKS + 1) * (sizeof *pool.blocks + sizeof *pool.by_base);
    pool.blocks = ffm_new_pages(bytes);
    if (pool.blocks == NULL)
        return false;
    pool.by_base = (uint32_t *)(pool.blocks + BLOCKS + 1);
    return true;
}

static void insert(uint64_t address, size_t bytes, ffm_pool_memory memory)
{
    uint32_t place = pool.unused;
    if (place != 0)
        pool.unused = pool.blocks[place].next;
    else
        place = ++pool.used;
    uint32_t rank = rank_of(address);
    memmove(&pool.by_base[rank + 1], &pool.by_base[rank], (pool.count++ - rank) * sizeof *pool.by_base);
    pool.by_base[rank] = place;
    pool.blocks[place] = (block){.base = address, .actual = bytes, .memory = memory};
    become_live(&pool.blocks[place], bytes);
}

static void return_excess(void)
{
    ffm_allowance_ask();
    while (true) {
        pthread_mutex_lock(&ffm_lock);
        uint64_t surplus = excess();
        pthread_mutex_unlock(&ffm_lock);
        if (surplus == 0)
            return;
        if (ffm_driver.release(surplus) == FFM_CUDA_SUCCESS)
            FFM_COUNT(pool_returned);
    }
}

void ffm_pool_allocated(uint64_t address, size_t bytes, ffm_pool_memory memory)
{
    pthread_mutex_lock(&ffm_lock);
    if (have_tables() && pool.count < BLOCKS) {
        block *stale;
        while ((stale = around(address)) != NULL) /* freed in a way that was not observed */
            drop(stale);
        insert(address, bytes, memory);
    }
    pthread_mutex_unlock(&ffm_lock);
    return_excess();
}

static ffm_block_state state_of(const block *found)
{
    if (found->freed != 0)
        return FFM_BLOCK_IDLE;
    if (found->memory == FFM_MEMORY_ORDERED)
        return FFM_BLOCK_ORDERED;
    return found->memory == FFM_MEMORY_PLANNED && !found->shared ? FFM_BLOCK_POOLABLE : FFM_BLOCK_LIVE;
}

ffm_block_state ffm_pool_state(uint64_t address)
{
    pthread_mutex_lock(&ffm_lock);
    const block *found = at(address);
    ffm_block_state state = found != NULL ? state_of(found) : FFM_BLOCK_UNKNOWN;
    pthread_mutex_unlock(&ffm_lock);
    return state;
}

void ffm_pool_put(uint64_t address)
{
    pthread_mutex_lock(&ffm_lock);
    block *idle = at(address);
    if (idle != NULL && idle->freed == 0) {
        end_live(idle);
        become_idle(idle);
    }
    pthread_mutex_unlock(&ffm_lock);
}

void ffm_pool_freed(uint64_t address)
{
    pthread_mutex_lock(&ffm_lock);
    block *gone = at(address);
    if (gone != NULL)
        drop(gone);
    pthread_mutex_unlock(&ffm_lock);
}

bool ffm_pool_holds(uint64_t address, size_t bytes)
{
    pthread_mutex_lock(&ffm_lock);
    const block *found = around(address);
    bool holds = found != NULL && found->freed == 0 && !found->shared &&
                 bytes <= found->bytes - (address - found->base) && address - found->base < found->bytes;
    pthread_mutex_unlock(&ffm_lock);
    return holds;
}

bool ffm_pool_range(uint64_t address, uint64_t *base, size_t *bytes)
{
    pthread_mutex_lock(&ffm_lock);
    const block *found = around(address);
    bool known = found != NULL && found->freed == 0 && found->actual != found->bytes;
    if (known) {
        *base = found->base;
        *bytes = found->bytes;
    }
    pthread_mutex_unlock(&ffm_lock);
    return known;
}

void ffm_pool_asked(uint64_t address)
{
    uint64_t base = 0;
    if (ffm_state_capturing())
        return;
    pthread_mutex_lock(&ffm_lock);
    block *found = around(address);
    if (found != NULL && found->freed != 0) {
        base = found->base;
        drop(found);
    }
    pthread_mutex_unlock(&ffm_lock);
    if (base != 0 && ffm_driver.release(base) == FFM_CUDA_SUCCESS)
        FFM_COUNT(pool_returned);
}

void ffm_pool_share(uint64_t address)
{
    ffm_pool_asked(address);
    pthread_mutex_lock(&ffm_lock);
    block *found = around(address);
    if (found != NULL)
        found->shared = true;
    pthread_mutex_unlock(&ffm_lock);
}

size_t ffm_pool_hidden_bytes(void)
{
    pthread_mutex_lock(&ffm_lock);
    size_t bytes = pool.idle_bytes + pool.surplus;
    pthread_mutex_unlock(&ffm_lock);
    return bytes;
}

bool ffm_pool_give_back(void)
{
    bool any = false;
    while (true) {
        uint64_t base = 0;
        pthread_mutex_lock(&ffm_lock);
        block *oldest = pool.idle_bytes > 0 ? oldest_idle() : NULL;
        if (oldest != NULL) {
            base = oldest->base;
            drop(oldest);
        }
        pthread_mutex_unlock(&ffm_lock);
        if (base == 0)
            return any;
        any = true;
        if (ffm_driver.release(base) == FFM_CUDA_SUCCESS)
            FFM_COUNT(pool_returned);
    }
}

void ffm_pool_forget(void)
{
    pthread_mutex_lock(&ffm_lock);
    pool.count = pool.used = pool.unused = 0;
    memset(pool.bins, 0, sizeof pool.bins);
    pool.live_bytes = pool.idle_bytes = pool.surplus = 0;
    ffm_counters->pool_bytes = 0;
    pthread_mutex_unlock(&ffm_lock);
}
