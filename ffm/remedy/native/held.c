#include "held.h"

#include "state.h"

enum { RANGES = 64 };

typedef struct {
    uint64_t to;
    ffm_content_key content;
} held_range;

/* Under ffm_lock. */
static struct {
    held_range ranges[RANGES];
    uint32_t count;
    uint32_t next; /* place to reuse when all are taken */
    bool unknowable;
} held;

void ffm_held_lost(void)
{
    if (__atomic_load_n(&held.count, __ATOMIC_RELAXED) == 0)
        return;
    pthread_mutex_lock(&ffm_lock);
    held.count = 0;
    pthread_mutex_unlock(&ffm_lock);
}

/* Locked. */
static void forget(uint64_t to, size_t bytes)
{
    for (uint32_t i = held.count; i > 0; i--) {
        const held_range *range = &held.ranges[i - 1];
        if (range->to < to + bytes && to < range->to + range->content.bytes)
            held.ranges[i - 1] = held.ranges[--held.count];
    }
}

void ffm_held_overwritten(uint64_t to, size_t bytes)
{
    if (__atomic_load_n(&held.count, __ATOMIC_RELAXED) == 0)
        return;
    pthread_mutex_lock(&ffm_lock);
    forget(to, bytes);
    pthread_mutex_unlock(&ffm_lock);
}

void ffm_held_unknowable(void)
{
    pthread_mutex_lock(&ffm_lock);
    held.unknowable = true;
    held.count = 0;
    pthread_mutex_unlock(&ffm_lock);
}

void ffm_held_uploaded(uint64_t to, const ffm_content_key *content)
{
    pthread_mutex_lock(&ffm_lock);
    forget(to, content->bytes);
    if (!held.unknowable) {
        uint32_t place = held.count < RANGES ? held.count++ : held.next++ % RANGES;
        held.ranges[place] = (held_range){to, *content};
    }
    pthread_mutex_unlock(&ffm_lock);
}

bool ffm_held_at(uint64_t to, const ffm_content_key *content)
{
    pthread_mutex_lock(&ffm_lock);
    bool found = false;
    for (uint32_t i = 0; i < held.count && !found; i++) {
        const held_range *range = &held.ranges[i];
        found = range->to == to && range->content.low == content->low && range->content.high == content->high &&
                range->content.bytes == content->bytes;
    }
    pthread_mutex_unlock(&ffm_lock);
    return found;
}
