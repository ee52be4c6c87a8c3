#include "given_lists.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "sink.h"

enum { LISTS = 1 << 14, PLACES = 2 * LISTS };

typedef struct {
    XXH128_hash_t hash;
    uint64_t number; /* 0 for a free place */
} known_list;

static struct {
    pthread_mutex_t lock;
    known_list places[PLACES]; /* a hash table with open addressing */
    uint64_t count;
    ffm_stream records;
} lists = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The place of a list, or the free one where it belongs. */
static known_list *place_of(XXH128_hash_t hash)
{
    for (uint64_t place = hash.low64;; place++) {
        known_list *found = &lists.places[place % PLACES];
        if (found->number == 0 || XXH128_isEqual(found->hash, hash))
            return found;
    }
}

static bool record(const ffm_given_words *list, uint64_t number)
{
    const size_t bytes = list->count * sizeof(ffm_given);
    if (bytes == 0)
        return true;
    ffm_given *out = ffm_sink_reserve(&lists.records, FFM_CHUNK_GIVEN, 0, bytes);
    if (out == NULL)
        return false;
    for (uint32_t i = 0; i < list->count; i++)
        out[i] = (ffm_given){number, list->words[i].offset, list->words[i].allocation};
    ffm_sink_commit(&lists.records, bytes);
    return true;
}

uint64_t ffm_given_list(const ffm_given_words *list)
{
    if (list->count > FFM_MOST_GIVEN)
        return 0;
    const XXH128_hash_t hash = XXH3_128bits(list->words, list->count * sizeof *list->words);
    pthread_mutex_lock(&lists.lock);
    known_list *place = place_of(hash);
    if (place->number == 0 && lists.count < LISTS && record(list, lists.count + 1))
        *place = (known_list){hash, ++lists.count};
    const uint64_t number = place->number;
    pthread_mutex_unlock(&lists.lock);
    return number;
}

void ffm_given_lists_after_fork(void)
{
    pthread_mutex_init(&lists.lock, NULL);
    ffm_sink_release(&lists.records);
    lists.records = (ffm_stream){0};
    if (lists.count > 0)
        memset(lists.places, 0, sizeof lists.places);
    lists.count = 0;
}
