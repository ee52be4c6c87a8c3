#include "effects.h"

#include <stddef.h>

#include "state.h"
#include "streams.h"

enum { BUSY = 256, TRANSFERS = 64 };

/* The last effect of a stream. */
typedef struct {
    uint64_t stream, number;
} stream_effect;

/* A transfer under way on host memory. */
typedef struct {
    uint64_t number; /* of the effect */
    uint64_t stream, start;
    size_t bytes;
    bool source;
} transfer_effect;

/* Under ffm_lock. */
static struct {
    stream_effect busy[BUSY];
    uint32_t busy_count;
    transfer_effect transfers[TRANSFERS];
    uint32_t transfer_count;
    uint64_t orphan;  /* the last effect on a stream that cannot be queried; 0 if none is under way */
    uint64_t numbers; /* given out; read without the lock, too */
} effects;

/* Locked. */
static uint64_t next_number(void)
{
    return __atomic_add_fetch(&effects.numbers, 1, __ATOMIC_RELEASE);
}

static void orphan(uint64_t number)
{
    if (number > effects.orphan)
        effects.orphan = number;
}

static void note(uint64_t stream)
{
    uint64_t number = next_number();
    if (!ffm_streams_know(stream)) {
        orphan(number);
        return;
    }
    uint32_t place = 0;
    while (place < effects.busy_count && effects.busy[place].stream != stream)
        place++;
    if (place == BUSY) {
        orphan(number);
        return;
    }
    effects.busy[place] = (stream_effect){stream, number};
    if (place == effects.busy_count)
        effects.busy_count++;
}

void ffm_effect(uint64_t stream)
{
    pthread_mutex_lock(&ffm_lock);
    note(stream);
    pthread_mutex_unlock(&ffm_lock);
}

void ffm_effect_of_transfer(uint64_t stream, uint64_t start, size_t bytes, bool source)
{
    pthread_mutex_lock(&ffm_lock);
    if (effects.transfer_count < TRANSFERS && ffm_streams_know(stream))
        effects.transfers[effects.transfer_count++] = (transfer_effect){next_number(), stream, start, bytes, source};
    else
        note(stream);
    pthread_mutex_unlock(&ffm_lock);
}

uint64_t ffm_effects_now(void)
{
    return __atomic_load_n(&effects.numbers, __ATOMIC_ACQUIRE);
}

void ffm_effects_over(uint64_t stream, uint64_t last)
{
    for (uint32_t i = effects.busy_count; i > 0; i--) {
        const stream_effect *at = &effects.busy[i - 1];
        if (at->number <= last && (stream == 0 || at->stream == stream))
            effects.busy[i - 1] = effects.busy[--effects.busy_count];
    }
    for (uint32_t i = effects.transfer_count; i > 0; i--) {
        const transfer_effect *at = &effects.transfers[i - 1];
        if (at->number <= last && (stream == 0 || at->stream == stream))
            effects.transfers[i - 1] = effects.transfers[--effects.transfer_count];
    }
    if (stream == 0 && effects.orphan <= last)
        effects.orphan = 0;
}

void ffm_effects_stream_gone(uint64_t stream)
{
    for (uint32_t i = 0; i < effects.busy_count; i++)
        if (effects.busy[i].stream == stream)
            orphan(effects.busy[i].number);
    for (uint32_t i = 0; i < effects.transfer_count; i++)
        if (effects.transfers[i].stream == stream)
            orphan(effects.transfers[i].number);
    ffm_effects_over(stream, UINT64_MAX);
}

void ffm_effects_forget(void)
{
    effects.busy_count = effects.transfer_count = 0;
    effects.orphan = 0;
}

/* Remove effects that are over; true if only transfers remain. Locked. */
static bool only_transfers(void)
{
    for (uint32_t i = effects.busy_count; i > 0; i--) {
        if (!ffm_streams_idle(effects.busy[i - 1].stream))
            return false;
        effects.busy[i - 1] = effects.busy[--effects.busy_count];
    }
    for (uint32_t i = effects.transfer_count; i > 0; i--) {
        if (!ffm_streams_may_ask(effects.transfers[i - 1].stream))
            return false;
        if (ffm_streams_idle(effects.transfers[i - 1].stream))
            effects.transfers[i - 1] = effects.transfers[--effects.transfer_count];
    }
    return effects.orphan == 0;
}

bool ffm_effects_may_write(uint64_t start, size_t bytes)
{
    pthread_mutex_lock(&ffm_lock);
    bool may = ffm_state_capturing() || !only_transfers(); /* a stream must not be queried while it is captured */
    for (uint32_t i = 0; i < effects.transfer_count && !may; i++) {
        const transfer_effect *at = &effects.transfers[i];
        may = !at->source && at->start < start + bytes && start < at->start + at->bytes;
    }
    pthread_mutex_unlock(&ffm_lock);
    return may;
}

static ffm_transfer_closer *closer;

void ffm_effects_close_transfers_with(ffm_transfer_closer *chosen)
{
    closer = chosen;
}

/* Close what a transfer works on, without holding the lock: if that waits, other threads continue. */
static bool close_transfer(const transfer_effect *under_way)
{
    if (closer == NULL || !closer(under_way->start, under_way->bytes, under_way->source, under_way->stream))
        return false;
    pthread_mutex_lock(&ffm_lock);
    for (uint32_t i = effects.transfer_count; i > 0; i--)
        if (effects.transfers[i - 1].number == under_way->number)
            effects.transfers[i - 1] = effects.transfers[--effects.transfer_count];
    pthread_mutex_unlock(&ffm_lock);
    return true;
}

bool ffm_effects_under_way(void)
{
    transfer_effect under_way[TRANSFERS];
    pthread_mutex_lock(&ffm_lock);
    bool good = !ffm_state_capturing() && only_transfers(); /* a stream must not be queried while it is captured */
    uint32_t count = good ? effects.transfer_count : 0;
    for (uint32_t i = 0; i < count; i++)
        under_way[i] = effects.transfers[i];
    pthread_mutex_unlock(&ffm_lock);
    for (uint32_t i = 0; i < count && good; i++)
        good = close_transfer(&under_way[i]);
    return !good;
}
