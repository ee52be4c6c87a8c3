#include "waits.h"

#include <pthread.h>
#include <stddef.h>

#include "contexts.h"

enum { EVENTS = 1 << 12, PER_THREAD_HANDLE = 2, LEGACY_HANDLE = 1 };

/* Default streams get numbers that no handle has, which is a pointer: smaller ones, and larger ones. */
#define LEGACY_STREAM(context) ((uint64_t)(context) << 4)
#define PER_THREAD_STREAM(context, thread) (1ULL << 60 | (uint64_t)(context) << 40 | (uint64_t)(thread) << 4)
#define NO_STREAM UINT64_MAX

/* The last record of an event. A lost entry makes a wait for the event uncertain, never wrong. */
typedef struct {
    uint64_t event, stream, recorded;
    bool shared; /* with another process, which may record it; stays so */
} event_record;

static struct {
    pthread_mutex_t lock;
    bool unseen; /* a graph may have recorded any event */
    event_record table[EVENTS];
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

/* Locked. */
static void note(const event_record *last)
{
    event_record *place = slot(last->event);
    if (!place->shared)
        *place = *last;
}

void ffm_waits_note(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread)
{
    event_record last = {.event = operation->handle, .stream = NO_STREAM};
    const bool in_graph = operation->flags & FFM_OPERATION_RECORDS;
    if (operation->result != 0)
        return;
    switch (function->effect) {
    case FFM_EFFECT_RECORD_EVENT:
        last.stream = ffm_stream_key(function, operation, thread);
        last.recorded = operation->start;
        break;
    case FFM_EFFECT_RECORD_CONTEXT:
        break;
    case FFM_EFFECT_SHARE_EVENT:
        last.shared = true;
        break;
    default:
        if (!in_graph)
            return;
    }
    pthread_mutex_lock(&events.lock);
    if (in_graph)
        events.unseen = true;
    else
        note(&last);
    pthread_mutex_unlock(&events.lock);
}

static bool event_cover(const ffm_operation *operation, ffm_cover *cover)
{
    pthread_mutex_lock(&events.lock);
    const event_record *last = slot(operation->handle);
    bool known = !events.unseen && !last->shared && last->event == operation->handle;
    *cover = (ffm_cover){.stream = known ? last->stream : NO_STREAM, .before = known ? last->recorded : 0};
    pthread_mutex_unlock(&events.lock);
    return true;
}

bool ffm_waited(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread,
                ffm_cover *cover)
{
    uint64_t key = ffm_stream_key(function, operation, thread);
    *cover =
        (ffm_cover){.context = ffm_context_recorded(operation), .stream = NO_STREAM, .before = operation->start + 1};
    switch (function->kind) {
    case FFM_KIND_SYNCHRONIZATION:
    case FFM_KIND_QUERY:
        if (operation->result != 0)
            return false;
        if (function->awaits == FFM_AWAITS_EVENT)
            return event_cover(operation, cover);
        if (function->awaits == FFM_AWAITS_STREAM)
            cover->stream = key;
        else
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
            cover->stream = key;
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
