#include "waits.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "contexts.h"

enum { EVENTS = 1 << 12, STREAMS = 1 << 8, PER_THREAD_HANDLE = 2, LEGACY_HANDLE = 1 };

/* Default streams get numbers that are no handle, since handles are pointers: smaller ones, and larger ones. */
#define LEGACY_STREAM(context) ((uint64_t)(context) << 4)
#define PER_THREAD_STREAM(context, thread) (1ULL << 60 | (uint64_t)(context) << 40 | (uint64_t)(thread) << 4)
#define NO_STREAM UINT64_MAX

/* The last record of an event. A lost entry makes a wait for the event uncertain, never wrong. */
typedef struct {
    uint64_t event, stream;
    uint64_t recorded, known; /* when the call began, and ended */
    bool shared;              /* with another process, which may record it; stays so */
    ffm_behind behind;        /* what the device does before it, of other streams */
} event_record;

/* A stream that has waited for events. */
typedef struct {
    uint64_t stream;
    ffm_behind behind;
} waiting_stream;

static struct {
    pthread_mutex_t lock;
    bool unseen;  /* a graph may have recorded any event */
    bool awaited; /* some stream has waited for one */
    event_record table[EVENTS];
    waiting_stream streams[STREAMS];
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t ffm_stream_handle(const ffm_function *function, const ffm_operation *operation)
{
    return operation->stream == 0 && function->per_thread_stream ? PER_THREAD_HANDLE : operation->stream;
}

uint64_t ffm_stream_key(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread)
{
    const uint32_t context = ffm_context_recorded(operation);
    if (ffm_stream_handle(function, operation) == PER_THREAD_HANDLE)
        return PER_THREAD_STREAM(context, thread->number);
    return operation->stream <= LEGACY_HANDLE ? LEGACY_STREAM(context) : operation->stream;
}

static event_record *slot(uint64_t event)
{
    return &events.table[(event >> 4) * 0x9E3779B97F4A7C15ULL >> 52];
}

static waiting_stream *place_of(uint64_t stream)
{
    return &events.streams[(stream >> 4) * 0x9E3779B97F4A7C15ULL >> 56];
}

/* Where an addition about a stream goes: its place, a new one, or that of the oldest. */
static ffm_ordered *room_for(ffm_behind *behind, uint64_t stream)
{
    ffm_ordered *oldest = &behind->streams[0];
    for (uint32_t i = 0; i < behind->count; i++) {
        if (behind->streams[i].stream == stream)
            return &behind->streams[i];
        if (behind->streams[i].before < oldest->before)
            oldest = &behind->streams[i];
    }
    if (behind->count == FFM_STREAMS_BEHIND)
        return oldest;
    ffm_ordered *added = &behind->streams[behind->count++];
    *added = (ffm_ordered){.stream = stream};
    return added;
}

static void add(ffm_behind *behind, const ffm_ordered *more)
{
    ffm_ordered *place = room_for(behind, more->stream);
    if (place->before < more->before)
        *place = *more;
}

/* Which streams' work came before a stream's own at a certain time. Locked. */
static void find_behind(uint64_t stream, uint64_t time, ffm_behind *found)
{
    found->count = 0;
    const waiting_stream *waiting = place_of(stream);
    if (!events.awaited || waiting->stream != stream)
        return;
    for (uint32_t i = 0; i < waiting->behind.count; i++)
        if (waiting->behind.streams[i].since <= time)
            found->streams[found->count++] = waiting->behind.streams[i];
}

/* Locked. */
static void note(event_record *last)
{
    event_record *place = slot(last->event);
    if (place->shared)
        return;
    if (last->stream != NO_STREAM)
        find_behind(last->stream, last->recorded, &last->behind);
    *place = *last;
}

/* The last record of the event that an operation waits for, or NULL if that is not known. Locked. */
static const event_record *record_for(const ffm_operation *operation)
{
    const event_record *last = slot(operation->handle);
    const bool is_known = !events.unseen && !last->shared && last->event == operation->handle &&
                          last->stream != NO_STREAM && last->known <= operation->start;
    return is_known ? last : NULL;
}

/* A stream waits for an event. Locked. */
static void order(uint64_t stream, const ffm_operation *operation)
{
    const event_record *last = record_for(operation);
    if (last == NULL || last->stream == stream)
        return;
    waiting_stream *waiting = place_of(stream);
    if (waiting->stream != stream)
        *waiting = (waiting_stream){.stream = stream};
    __atomic_store_n(&events.awaited, true, __ATOMIC_RELAXED);
    const uint64_t since = operation->start + operation->duration;
    add(&waiting->behind, &(ffm_ordered){last->stream, last->recorded, since});
    for (uint32_t i = 0; i < last->behind.count; i++)
        if (last->behind.streams[i].stream != stream)
            add(&waiting->behind,
                &(ffm_ordered){last->behind.streams[i].stream, last->behind.streams[i].before, since});
}

static bool ends_event(const ffm_function *function)
{
    return function->kind == FFM_KIND_EVENT && function->effect == FFM_EFFECT_NONE && function->handle >= 0;
}

/* What has ended is forgotten: others can get its handle. Locked. */
static void forget(const ffm_function *function, uint64_t handle)
{
    if (ends_event(function)) {
        if (slot(handle)->event == handle)
            note(&(event_record){.event = handle, .stream = NO_STREAM});
    } else if (ffm_context_ends(function)) {
        memset(events.streams, 0, sizeof events.streams);
    } else if (place_of(handle)->stream == handle) {
        *place_of(handle) = (waiting_stream){0};
    }
}

static void note_record(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread)
{
    event_record last = {.event = operation->handle, .stream = NO_STREAM};
    last.shared = function->effect == FFM_EFFECT_SHARE_EVENT;
    if (function->effect == FFM_EFFECT_RECORD_EVENT) {
        last.stream = ffm_stream_key(function, operation, thread);
        last.recorded = operation->start;
        last.known = operation->start + operation->duration;
    }
    note(&last);
}

typedef enum { NOTHING, RECORD, ORDER, END } meaning;

static meaning meaning_of(const ffm_function *function)
{
    switch (function->effect) {
    case FFM_EFFECT_RECORD_EVENT:
    case FFM_EFFECT_RECORD_CONTEXT:
    case FFM_EFFECT_SHARE_EVENT:
        return RECORD;
    case FFM_EFFECT_WAIT_EVENT:
        return ORDER;
    case FFM_EFFECT_END_STREAM:
        return END;
    default:
        return ffm_context_ends(function) || ends_event(function) ? END : NOTHING;
    }
}

void ffm_waits_note(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread)
{
    const meaning meant = meaning_of(function);
    const bool in_graph = operation->flags & FFM_OPERATION_RECORDS;
    if (operation->result != 0 || (meant == NOTHING && !in_graph))
        return;
    pthread_mutex_lock(&events.lock);
    if (in_graph)
        events.unseen = true;
    else if (meant == RECORD)
        note_record(function, operation, thread);
    else if (meant == ORDER)
        order(ffm_stream_key(function, operation, thread), operation);
    else
        forget(function, operation->handle);
    pthread_mutex_unlock(&events.lock);
}

/* Work that the device has done before that of the stream, so that the call has waited for it, too. */
static bool stream_cover(uint64_t stream, const ffm_operation *operation, ffm_cover *cover)
{
    cover->stream = stream;
    if (!__atomic_load_n(&events.awaited, __ATOMIC_RELAXED))
        return true;
    pthread_mutex_lock(&events.lock);
    find_behind(stream, operation->start, &cover->behind);
    pthread_mutex_unlock(&events.lock);
    return true;
}

static bool event_cover(const ffm_operation *operation, ffm_cover *cover)
{
    pthread_mutex_lock(&events.lock);
    const event_record *last = record_for(operation);
    cover->stream = last == NULL ? NO_STREAM : last->stream;
    cover->before = last == NULL ? 0 : last->recorded;
    if (last != NULL)
        cover->behind = last->behind;
    pthread_mutex_unlock(&events.lock);
    return true;
}

bool ffm_waited(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread,
                ffm_cover *cover)
{
    uint64_t key = ffm_stream_key(function, operation, thread);
    cover->everything = false;
    cover->context = ffm_context_recorded(operation);
    cover->stream = NO_STREAM;
    cover->before = operation->start + 1;
    cover->behind.count = 0;
    switch (function->kind) {
    case FFM_KIND_SYNCHRONIZATION:
    case FFM_KIND_QUERY:
        if (operation->result != 0)
            return false;
        if (function->awaits == FFM_AWAITS_EVENT)
            return event_cover(operation, cover);
        if (function->awaits == FFM_AWAITS_STREAM)
            return stream_cover(key, operation, cover);
        cover->everything = true;
        return true;
    case FFM_KIND_TRANSFER:
    case FFM_KIND_SET:
        if (operation->waits == 0 && function->asynchronous)
            return false;
        /* An asynchronous upload may only have waited for room for its bytes, which other streams had taken. */
        if (function->asynchronous && !(operation->flags & FFM_OPERATION_HOST_DESTINATION))
            return true;
        if (operation->waits > 0 || function->direction == FFM_DIRECTION_DEVICE_TO_HOST)
            return stream_cover(key, operation, cover);
        return true;
    case FFM_KIND_FREE:
        cover->everything = operation->waits > 0;
        return operation->waits > 0;
    default:
        return operation->waits > 0;
    }
}

void ffm_waits_after_fork(void)
{
    pthread_mutex_init(&events.lock, NULL);
}
