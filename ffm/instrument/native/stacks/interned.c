#include "interned.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "new_pages.h"

enum { FIRST_SLOTS = 1 << 14, ARENA = 1 << 20 };

/* Open addressing; at most half of the places are taken. */
typedef struct ffm_interned_slots {
    uint32_t mask;
    ffm_interned *places[];
} slots;

static size_t bytes_of(uint32_t places)
{
    return sizeof(slots) + places * sizeof(ffm_interned *);
}

static uint32_t start_of_key(const uint8_t *key)
{
    uint32_t start;
    memcpy(&start, key, sizeof start);
    return start;
}

static uint32_t start_of(const ffm_interned *stack, bool by_key)
{
    return by_key ? start_of_key(stack->key) : (uint32_t)stack->hash.low;
}

ffm_stack_hash ffm_interned_hash(const ffm_captured_stack *captured, uint32_t generation)
{
    const uint32_t count = captured->depth + captured->python_words;
    const XXH128_hash_t hash = XXH3_128bits(captured->words, count * sizeof *captured->words);
    const uint64_t besides = (uint64_t)generation << 32 | captured->python_words << 16 | captured->depth;
    return (ffm_stack_hash){.low = hash.low64 ^ besides * 0x9E3779B97F4A7C15ULL,
                            .high = hash.high64 ^ (uint64_t)captured->function * 0x9E3779B97F4A7C15ULL};
}

ffm_interned *ffm_interned_find(const ffm_interned_table *table, ffm_stack_hash hash)
{
    const slots *all = __atomic_load_n(&table->slots, __ATOMIC_ACQUIRE);
    if (all == NULL)
        return NULL;
    for (uint32_t place = (uint32_t)hash.low & all->mask;; place = (place + 1) & all->mask) {
        ffm_interned *at = __atomic_load_n(&all->places[place], __ATOMIC_ACQUIRE);
        if (at == NULL || (at->hash.low == hash.low && at->hash.high == hash.high))
            return at;
    }
}

const ffm_interned *ffm_interned_recent(ffm_recent_stacks *recent, uint32_t generation,
                                        const ffm_captured_stack *captured, ffm_interned ***place)
{
    const uint32_t count = captured->depth + captured->python_words;
    uint64_t mixed = count + (uint64_t)captured->function;
    for (uint32_t i = 0; i < 4 && i < count; i++)
        mixed = (mixed << 3) + captured->words[i];
    *place = &recent->places[mixed * 0x9E3779B97F4A7C15ULL >> 56];
    const ffm_interned *at = __atomic_load_n(*place, __ATOMIC_ACQUIRE);
    return at != NULL && at->generation == generation && at->function == captured->function &&
                   at->depth == captured->depth && at->python_words == captured->python_words &&
                   memcmp(at->words, captured->words, count * sizeof *captured->words) == 0
               ? at
               : NULL;
}

ffm_interned *ffm_interned_find_key(const ffm_interned_table *table, const uint8_t *key)
{
    const slots *all = table->slots;
    if (all == NULL)
        return NULL;
    for (uint32_t place = start_of_key(key) & all->mask;; place = (place + 1) & all->mask)
        if (all->places[place] == NULL || memcmp(all->places[place]->key, key, FFM_KEY_BYTES) == 0)
            return all->places[place];
}

static void put(slots *all, ffm_interned *stack, bool by_key)
{
    uint32_t place = start_of(stack, by_key) & all->mask;
    while (all->places[place] != NULL)
        place = (place + 1) & all->mask;
    __atomic_store_n(&all->places[place], stack, __ATOMIC_RELEASE);
}

/* What was there stays mapped, because others may be searching it: all of that together takes less than the new one. */
static bool grow(ffm_interned_table *table, bool by_key)
{
    const slots *old = table->slots;
    const uint32_t places = old == NULL ? FIRST_SLOTS : 2 * (old->mask + 1);
    slots *fresh = ffm_new_pages(bytes_of(places));
    if (fresh == NULL)
        return false;
    fresh->mask = places - 1;
    for (uint32_t i = 0; old != NULL && i <= old->mask; i++)
        if (old->places[i] != NULL)
            put(fresh, old->places[i], by_key);
    __atomic_store_n(&table->slots, fresh, __ATOMIC_RELEASE);
    return true;
}

static int add(ffm_interned_table *table, ffm_interned *stack, bool by_key)
{
    const bool full = table->slots == NULL || table->used > table->slots->mask / 2;
    if (full && !grow(table, by_key))
        return 0;
    put(table->slots, stack, by_key);
    table->used++;
    return 1;
}

int ffm_interned_add(ffm_interned_table *table, ffm_interned *stack)
{
    return add(table, stack, false);
}

int ffm_interned_add_by_key(ffm_interned_table *table, ffm_interned *stack)
{
    return add(table, stack, true);
}

ffm_interned *ffm_interned_allocate(size_t words)
{
    static char *arena;
    static size_t used;
    const size_t bytes = (sizeof(ffm_interned) + words * sizeof(uint64_t) + 15) & ~(size_t)15;
    if (arena == NULL || used + bytes > ARENA) {
        char *fresh = ffm_new_pages(ARENA);
        if (fresh == NULL)
            return NULL;
        arena = fresh;
        used = 0;
    }
    void *room = arena + used;
    used += bytes;
    return room;
}

void ffm_interned_clear(ffm_interned_table *table)
{
    if (table->slots != NULL)
        munmap(table->slots, bytes_of(table->slots->mask + 1));
    *table = (ffm_interned_table){0};
}
