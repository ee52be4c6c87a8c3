#include "result_blocks.h"

#include <stdbool.h>

#include "driver_blocks.h"

#define EXPORT __attribute__((visibility("default")))

enum { PAGE = 4096, MOST = 4 * PAGE }; /* larger blocks have pages of their own anyway */
enum { RECENT = 1 << 14, KINDS = 1 << 8 };
enum { MOST_PAGES = 1 << 14 };   /* that are in use at a time: 64 MiB */
enum { TRIED = 64, ONE_IN = 2 }; /* after so many blocks of a kind, so many must hold results */

/* Two threads may write to one place at once, and mix two blocks: then a wrong kind is tried. */
static struct {
    uint64_t block, kind;
} recent[RECENT];

static struct {
    uint64_t kind;
    uint32_t given, used;
} kinds[KINDS];

static bool some; /* kinds */
static uint32_t pages;
static void (*told)(void *, size_t);

static uint64_t kind_of(size_t bytes, const void *caller)
{
    return ((uint64_t)caller ^ (uint64_t)bytes << 48) | 1;
}

/* Knuth's multiplicative hash. */
static uint32_t hash(uint64_t key)
{
    return (uint32_t)(key * 0x9E3779B97F4A7C15ULL >> 32);
}

static bool is_known(uint64_t kind)
{
    return __atomic_load_n(&kinds[hash(kind) % KINDS].kind, __ATOMIC_RELAXED) == kind;
}

void ffm_result_blocks_note(const void *block, size_t bytes, const void *caller)
{
    const uint32_t place = hash((uint64_t)block) % RECENT;
    if (bytes >= MOST)
        return;
    __atomic_store_n(&recent[place].block, (uint64_t)block, __ATOMIC_RELAXED);
    __atomic_store_n(&recent[place].kind, kind_of(bytes, caller), __ATOMIC_RELAXED);
}

/* Whether blocks of a kind are worth their pages. */
static bool is_useful(uint32_t place)
{
    const uint32_t given = __atomic_load_n(&kinds[place].given, __ATOMIC_RELAXED);
    return given < TRIED || __atomic_load_n(&kinds[place].used, __ATOMIC_RELAXED) >= given / ONE_IN;
}

void *ffm_result_block(size_t alignment, size_t bytes, const void *caller)
{
    if (!__atomic_load_n(&some, __ATOMIC_RELAXED) || bytes >= MOST || alignment > PAGE)
        return NULL;
    const uint64_t kind = kind_of(bytes, caller);
    const uint32_t place = hash(kind) % KINDS;
    const uint32_t count = (uint32_t)((bytes + PAGE - 1) / PAGE) + (bytes == 0);
    if (!is_known(kind) || !is_useful(place))
        return NULL;
    if (__atomic_add_fetch(&pages, count, __ATOMIC_RELAXED) <= MOST_PAGES) {
        void *block = ffm_slab_pages(count);
        if (block != NULL) {
            __atomic_add_fetch(&kinds[place].given, 1, __ATOMIC_RELAXED);
            ffm_result_blocks_note(block, bytes, caller);
            return block;
        }
    }
    __atomic_sub_fetch(&pages, count, __ATOMIC_RELAXED);
    return NULL;
}

static uint64_t kind_at(uint64_t address)
{
    const uint32_t place = hash(address) % RECENT;
    const uint64_t kind = __atomic_load_n(&recent[place].kind, __ATOMIC_RELAXED);
    return __atomic_load_n(&recent[place].block, __ATOMIC_RELAXED) == address ? kind : 0;
}

static void add_kind(uint64_t kind)
{
    const uint32_t place = hash(kind) % KINDS;
    kinds[place].given = kinds[place].used = 0;
    __atomic_store_n(&kinds[place].kind, kind, __ATOMIC_RELAXED);
    __atomic_store_n(&some, true, __ATOMIC_RELAXED);
}

EXPORT void ffm_result_blocks_beside(uint64_t address)
{
    const uint64_t kind = kind_at(address);
    if (kind != 0 && !is_known(kind))
        add_kind(kind);
}

EXPORT void ffm_result_blocks_expect(const void *caller, uint64_t bytes)
{
    add_kind(kind_of(bytes, caller));
}

EXPORT void ffm_result_blocks_used(uint64_t address)
{
    const uint64_t kind = kind_at(address);
    if (kind != 0 && address % PAGE == 0 && is_known(kind))
        __atomic_add_fetch(&kinds[hash(kind) % KINDS].used, 1, __ATOMIC_RELAXED);
}

EXPORT void ffm_result_blocks_tell(void (*freed)(void *, size_t))
{
    __atomic_store_n(&told, freed, __ATOMIC_RELEASE);
}

static void block_ends(void *block, size_t bytes)
{
    void (*const freed)(void *, size_t) = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
    __atomic_sub_fetch(&pages, (uint32_t)(bytes / PAGE), __ATOMIC_RELAXED);
    if (freed != NULL)
        freed(block, bytes);
}

__attribute__((constructor)) static void open_result_blocks(void)
{
    ffm_slab_when_pages_end(block_ends);
}
