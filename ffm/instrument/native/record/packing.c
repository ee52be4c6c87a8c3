#include "packing.h"
#include "new_pages.h"

#include <string.h>
#include <sys/mman.h>

enum { WORD = sizeof(uint64_t) };

_Static_assert(sizeof(ffm_operation) == 11 * WORD && sizeof(ffm_content) == 10 * WORD && sizeof(ffm_part) == 5 * WORD &&
                   sizeof(ffm_access) == 6 * WORD && sizeof(ffm_extent) == 4 * WORD && sizeof(ffm_gpu_time) == 3 * WORD,
               "a packed record is a number of words, each with two bits beside the slot in 32");

static uint32_t words_of(uint32_t kind)
{
    static const uint8_t words[] = {
        [FFM_CHUNK_OPERATIONS] = sizeof(ffm_operation) / WORD, [FFM_CHUNK_CONTENTS] = sizeof(ffm_content) / WORD,
        [FFM_CHUNK_ACCESSES] = sizeof(ffm_access) / WORD,      [FFM_CHUNK_PARTS] = sizeof(ffm_part) / WORD,
        [FFM_CHUNK_EXTENTS] = sizeof(ffm_extent) / WORD,       [FFM_CHUNK_GPU_TIMES] = sizeof(ffm_gpu_time) / WORD};
    return words[kind];
}

static uint32_t *controls_of(ffm_chunk *chunk)
{
    return (uint32_t *)((char *)chunk + chunk->capacity) - 1;
}

/* Each chunk can be read without the others. */
static bool begin_chunk(ffm_packer *packer, uint32_t kind, uint32_t thread, uint32_t words)
{
    if (packer->last == NULL) {
        const size_t bytes = (size_t)FFM_PACKED_SLOTS * words * WORD;
        packer->last = ffm_new_pages(bytes);
        if (packer->last == NULL) {
            ffm_sink_lost();
            return false;
        }
        packer->last_bytes = bytes;
    } else {
        memset(packer->last, 0, packer->last_bytes);
    }
    if (!ffm_sink_next_chunk(&packer->stream, kind, thread, 0))
        return false;
    packer->next = (uint8_t *)(packer->stream.chunk + 1);
    packer->mark = 0;
    return true;
}

/* Whether a record fits, whatever its differences are. */
static bool has_room(const ffm_packer *packer, uint32_t words)
{
    ffm_chunk *chunk = packer->stream.chunk;
    return chunk != NULL && packer->next + (size_t)words * WORD <= (uint8_t *)(controls_of(chunk) - chunk->used);
}

/* A number that is small whichever of both is larger. */
static uint64_t difference(uint64_t now, uint64_t before)
{
    const int64_t change = (int64_t)(now - before);
    return (uint64_t)change << 1 ^ (uint64_t)(change >> 63);
}

/* A record of any type, by its words. */
typedef uint64_t __attribute__((may_alias)) word;

/* Write the differences after each other, and how long they are, as a control that starts as the slot. `less` is
 * subtracted from the second word. */
static inline uint8_t *write_differences(uint8_t *to, const word *words, uint64_t less, uint64_t *last, uint32_t count,
                                         uint32_t *control)
{
#pragma GCC unroll 11
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t now = i == 1 ? words[i] - less : words[i];
        if (now == last[i]) /* most are */
            continue;
        const uint64_t changed = difference(now, last[i]);
        const uint32_t size = 1 + (changed > UINT16_MAX) + (changed > UINT32_MAX);
        memcpy(to, &changed, WORD); /* the next one overwrites what is not needed of it */
        to += (1U << size) & ~1U;
        *control |= size << (FFM_PACKED_SIZES + 2 * i);
        last[i] = now;
    }
    return to;
}

/* Where a record goes. */
typedef struct {
    uint32_t kind, thread, slot, words;
} target;

/* Append a record; the next one's first word counts from `mark`. */
static inline bool pack(ffm_packer *packer, const target *at, const void *record, uint64_t less, uint64_t mark)
{
    if (!ffm_sink_takes())
        return false;
    if (__builtin_expect(!has_room(packer, at->words), 0) && !begin_chunk(packer, at->kind, at->thread, at->words))
        return false;
    ffm_chunk *chunk = packer->stream.chunk;
    uint32_t control = at->slot % FFM_PACKED_SLOTS;
    uint64_t *last = packer->last + (size_t)control * at->words;
    last[0] = packer->mark;
    packer->next = write_differences(packer->next, record, less, last, at->words, &control);
    *(controls_of(chunk) - chunk->used) = control;
    packer->mark = mark;
    packer->stream.written++;
    __atomic_store_n(&chunk->used, chunk->used + 1, __ATOMIC_RELEASE);
    return true;
}

bool ffm_pack_record(ffm_packer *packer, uint32_t kind, uint32_t thread, uint32_t slot, const void *record)
{
    const target at = {kind, thread, slot, words_of(kind)};
    return pack(packer, &at, record, 0, *(const word *)record);
}

bool ffm_pack_operation(ffm_packer *packer, uint32_t thread, const ffm_operation *operation)
{
    const target at = {FFM_CHUNK_OPERATIONS, thread, operation->stack, sizeof *operation / WORD};
    /* A long duration is mostly a wait. */
    return pack(packer, &at, operation, operation->wait, operation->start + operation->duration);
}

void ffm_packer_release(ffm_packer *packer)
{
    ffm_sink_release(&packer->stream);
    if (packer->last != NULL)
        munmap(packer->last, packer->last_bytes);
    packer->last = NULL;
}
