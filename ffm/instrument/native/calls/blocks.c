#include "blocks.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "address_halves.h"
#include "mappings.h"
#include "new_pages.h"

enum { CAPACITY = 1 << 16 };

static struct {
    pthread_mutex_t lock;
    ffm_block *table;   /* a block keeps its index; one with no bytes is free */
    uint32_t count;     /* blocks */
    uint32_t places;    /* indices in use, or free between those */
    uint64_t low, high; /* all blocks are in between */
    uint64_t changes;
    bool overflown;
} blocks = {.lock = PTHREAD_MUTEX_INITIALIZER, .low = UINT64_MAX};

static bool of_host(const ffm_function *function)
{
    return function->memory == FFM_MEMORY_PINNED || function->memory == FFM_MEMORY_MANAGED ||
           function->memory == FFM_MEMORY_REGISTERED;
}

static bool in(const ffm_block *block, uint64_t address)
{
    return address - block->start < block->bytes || address - block->device < block->bytes;
}

/* Addresses in [start, start + bytes) lead to a block now. Locked. */
static void widen(uint64_t start, uint64_t bytes)
{
    __atomic_store_n(&blocks.changes, blocks.changes + 1, __ATOMIC_RELEASE);
    if (start - FFM_LARGEST_ELEMENT < blocks.low)
        blocks.low = start - FFM_LARGEST_ELEMENT;
    if (start + bytes > blocks.high)
        blocks.high = start + bytes;
}

/* The first free index. */
static uint32_t free_place(void)
{
    uint32_t place = 0;
    if (blocks.count == blocks.places)
        return blocks.places;
    while (blocks.table[place].bytes != 0)
        place++;
    return place;
}

/* Locked. */
static void add(const ffm_block *block)
{
    if (blocks.table == NULL)
        blocks.table = ffm_new_pages(CAPACITY * sizeof *blocks.table);
    if (block->bytes == 0)
        return;
    if (blocks.table == NULL || blocks.count == CAPACITY) {
        __atomic_store_n(&blocks.overflown, true, __ATOMIC_RELAXED);
        return;
    }
    const uint32_t place = free_place();
    blocks.table[place] = *block;
    if (place == blocks.places)
        blocks.places++;
    __atomic_store_n(&blocks.count, blocks.count + 1, __ATOMIC_RELEASE);
    widen(block->start, block->bytes);
}

static bool find(uint64_t address, uint32_t *place)
{
    for (*place = 0; *place < blocks.places; ++*place)
        if (in(&blocks.table[*place], address))
            return true;
    return false;
}

/* Locked. */
static uint32_t named(uint64_t address, uint32_t places[FFM_BLOCKS_NAMED])
{
    uint32_t count = 0;
    for (uint32_t place = 0; place < blocks.places && count < FFM_BLOCKS_NAMED; place++) {
        const bool within = in(&blocks.table[place], address),
                   counted = in(&blocks.table[place], address + FFM_LARGEST_ELEMENT);
        if (within || counted)
            places[count++] = place;
        if (within && counted)
            break;
    }
    return count;
}

void ffm_blocks_add_variable(uint64_t start, uint64_t bytes)
{
    const ffm_block block = {
        .start = start, .bytes = bytes, .device = start, .allocated = true, .managed = true, .handed = true};
    bool known = false;
    pthread_mutex_lock(&blocks.lock);
    for (uint32_t i = 0; i < blocks.places && !known; i++)
        known = blocks.table[i].start == start;
    if (!known)
        add(&block);
    pthread_mutex_unlock(&blocks.lock);
}

bool ffm_blocks_complete(void)
{
    return !__atomic_load_n(&blocks.overflown, __ATOMIC_RELAXED);
}

enum { NO_PLACE = CAPACITY };

/* An address within the block at `own` does not count. */
static ffm_addresses hand_over(uint64_t address, uint32_t own)
{
    uint32_t places[FFM_BLOCKS_NAMED];
    ffm_addresses found = FFM_NO_ADDRESS;
    pthread_mutex_lock(&blocks.lock);
    for (uint32_t count = named(address, places); count > 0; count--) {
        ffm_block *block = &blocks.table[places[count - 1]];
        if (places[count - 1] == own)
            continue;
        if (!block->handed)
            found = FFM_NEW_ADDRESS;
        else if (found == FFM_NO_ADDRESS)
            found = FFM_KNOWN_ADDRESS;
        block->handed = true;
    }
    pthread_mutex_unlock(&blocks.lock);
    return found;
}

/* Whether nothing else is on the pages of what was allocated. An H200's driver puts pinned blocks at multiples of 512
 * bytes into mappings of 2 MiB. */
static bool fills_pages(const ffm_operation *operation)
{
    enum { PAGE = 4096 };
    const uint64_t start = operation->destination, end = start + operation->bytes;
    uint64_t first, last;
    if (start % PAGE == 0 && end % PAGE == 0)
        return true;
    return ffm_mappings_around(start, &first, &last) && first == start / PAGE * PAGE &&
           last == (end + PAGE - 1) / PAGE * PAGE;
}

void ffm_blocks_note(const ffm_function *function, const ffm_operation *operation)
{
    if (operation->result == 0 && function->kind == FFM_KIND_VIEW)
        hand_over(operation->source, NO_PLACE);
    if (operation->result != 0 || !of_host(function))
        return;
    const bool allocated = function->memory != FFM_MEMORY_REGISTERED;
    const bool alone = function->kind == FFM_KIND_ALLOCATION && allocated && fills_pages(operation);
    pthread_mutex_lock(&blocks.lock);
    if (function->kind == FFM_KIND_ALLOCATION) {
        const ffm_block block = {.start = operation->destination,
                                 .bytes = operation->bytes,
                                 .device = operation->destination,
                                 .allocated = allocated,
                                 .alone = alone,
                                 .managed = function->memory == FFM_MEMORY_MANAGED};
        add(&block);
    } else if (function->kind == FFM_KIND_MAPPING) {
        for (uint32_t i = 0; i < blocks.places; i++) {
            ffm_block *block = &blocks.table[i];
            if (operation->source - block->start < block->bytes) {
                block->device = operation->destination - (operation->source - block->start);
                widen(block->device, block->bytes);
            }
        }
    }
    pthread_mutex_unlock(&blocks.lock);
}

uint64_t ffm_blocks_remove(uint64_t start)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&blocks.lock);
    for (uint32_t i = blocks.places; i > 0 && bytes == 0; i--) {
        if (blocks.table[i - 1].start != start)
            continue;
        bytes = blocks.table[i - 1].bytes;
        if (bytes == 0)
            continue;
        blocks.table[i - 1] = (ffm_block){0};
        __atomic_store_n(&blocks.count, blocks.count - 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&blocks.lock);
    return bytes;
}

/* The block that contains an address; one with no bytes if there is none. */
static ffm_block block_of(uint64_t address)
{
    uint32_t place;
    ffm_block block = {0};
    if (address < blocks.low || address >= blocks.high)
        return block;
    pthread_mutex_lock(&blocks.lock);
    if (find(address, &place))
        block = blocks.table[place];
    pthread_mutex_unlock(&blocks.lock);
    return block;
}

bool ffm_blocks_find(uint64_t address, uint32_t *place)
{
    if (address < blocks.low || address >= blocks.high)
        return false;
    pthread_mutex_lock(&blocks.lock);
    const bool found = find(address, place);
    pthread_mutex_unlock(&blocks.lock);
    return found;
}

uint32_t ffm_blocks_named(uint64_t address, uint32_t places[FFM_BLOCKS_NAMED])
{
    if (address < blocks.low || address >= blocks.high)
        return 0;
    pthread_mutex_lock(&blocks.lock);
    const uint32_t count = named(address, places);
    pthread_mutex_unlock(&blocks.lock);
    return count;
}

bool ffm_blocks_hold(uint64_t address)
{
    return block_of(address).bytes != 0;
}

bool ffm_blocks_allocated(uint64_t address)
{
    return block_of(address).allocated;
}

bool ffm_blocks_alone(uint64_t address)
{
    return block_of(address).alone;
}

bool ffm_blocks_managed(uint64_t address)
{
    return block_of(address).managed;
}

uint32_t ffm_blocks_count(void)
{
    return __atomic_load_n(&blocks.count, __ATOMIC_ACQUIRE);
}

bool ffm_blocks_at(uint32_t place, ffm_block *block)
{
    pthread_mutex_lock(&blocks.lock);
    bool found = place < blocks.places;
    if (found)
        *block = blocks.table[place];
    pthread_mutex_unlock(&blocks.lock);
    return found;
}

ffm_addresses ffm_blocks_scan_within(uint32_t own, const void *words, uint64_t bytes)
{
    const char *const first = words;
    ffm_addresses found = FFM_NO_ADDRESS;
    if (ffm_blocks_count() == 0)
        return found;
    const uint64_t low = blocks.low, span = blocks.high - blocks.low;
    const ffm_halves halves = ffm_halves_between(low, blocks.high);
    for (uint64_t offset = 0; offset + sizeof(uint64_t) <= bytes;) {
        if (offset + FFM_HALVES_AT_ONCE <= bytes && !ffm_halves_any(first + offset, halves)) {
            offset += FFM_HALVES_AT_ONCE;
            continue;
        }
        const uint64_t end = offset + FFM_HALVES_AT_ONCE;
        for (; offset < end && offset + sizeof(uint64_t) <= bytes; offset += sizeof(uint64_t)) {
            uint64_t word;
            memcpy(&word, first + offset, sizeof word);
            const ffm_addresses here = word - low < span ? hand_over(word, own) : FFM_NO_ADDRESS;
            if (here > found)
                found = here;
        }
    }
    return found;
}

void ffm_blocks_scan(const void *words, uint64_t bytes)
{
    ffm_blocks_scan_within(NO_PLACE, words, bytes);
}

uint64_t ffm_blocks_changes(void)
{
    return __atomic_load_n(&blocks.changes, __ATOMIC_ACQUIRE);
}

void ffm_blocks_hand(uint32_t place)
{
    pthread_mutex_lock(&blocks.lock);
    if (place < blocks.places)
        blocks.table[place].handed = true;
    pthread_mutex_unlock(&blocks.lock);
}

void ffm_blocks_hand_all(void)
{
    pthread_mutex_lock(&blocks.lock);
    for (uint32_t place = 0; place < blocks.places; place++)
        blocks.table[place].handed = true;
    pthread_mutex_unlock(&blocks.lock);
}

void ffm_blocks_after_fork(void)
{
    pthread_mutex_init(&blocks.lock, NULL);
}
