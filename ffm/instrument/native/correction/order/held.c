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
    uint32_t next; /* index to reuse when all are taken */
    bool unknowable;
    uint64_t losses; /* written without the lock */
} held;

/* Locked; others look at it without the lock. */
static void shorten(uint32_t count)
{
    __atomic_store_n(&held.count, count, __ATOMIC_RELAXED);
}

/* Another thread may be noting an upload before or after this work. Either this function sees the upload, or the thread
 * sees that something was lost. */
void ffm_held_lost(void)
{
    __atomic_add_fetch(&held.losses, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&held.count, __ATOMIC_SEQ_CST) == 0)
        return;
    pthread_mutex_lock(&ffm_lock);
    shorten(0);
    pthread_mutex_unlock(&ffm_lock);
}

/* Locked. */
static void forget(uint64_t to, size_t bytes)
{
    for (uint32_t i = held.count; i > 0; i--) {
        const held_range *range = &held.ranges[i - 1];
        if (range->to < to + bytes && to < range->to + range->content.bytes) {
            held.ranges[i - 1] = held.ranges[held.count - 1];
            shorten(held.count - 1);
        }
    }
}

void ffm_held_overwritten(uint64_t to, size_t bytes)
{
    __atomic_add_fetch(&held.losses, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&held.count, __ATOMIC_SEQ_CST) == 0)
        return;
    pthread_mutex_lock(&ffm_lock);
    forget(to, bytes);
    pthread_mutex_unlock(&ffm_lock);
}

void ffm_held_unknowable(void)
{
    pthread_mutex_lock(&ffm_lock);
    held.unknowable = true;
    shorten(0);
    pthread_mutex_unlock(&ffm_lock);
}

uint64_t ffm_held_now(void)
{
    return __atomic_load_n(&held.losses, __ATOMIC_SEQ_CST);
}

void ffm_held_uploaded(uint64_t to, const ffm_content_key *content, uint64_t before)
{
    pthread_mutex_lock(&ffm_lock);
    forget(to, content->bytes);
    if (!held.unknowable) {
        bool room = held.count < RANGES;
        held.ranges[room ? held.count : held.next++ % RANGES] = (held_range){to, *content};
        __atomic_store_n(&held.count, held.count + room, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&held.losses, __ATOMIC_SEQ_CST) != before)
            forget(to, content->bytes);
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
