#include "waits.h"

#include <pthread.h>
#include <stddef.h>

enum { EVENTS = 1 << 12, PER_THREAD_HANDLE = 2, LEGACY_HANDLE = 1 };

/* Larger than any handle, which is a pointer. */
#define PER_THREAD_STREAM (1ULL << 60)
#define NO_STREAM UINT64_MAX

/* The last record of an event. A lost entry makes a wait for the event uncertain, never wrong. */
typedef struct {
    uint64_t event, stream, recorded;
} event_record;

static struct {
    pthread_mutex_t lock;
    event_record table[EVENTS];
} events = {.lock = PTHREAD_MUTEX_INITIALIZER};

uint64_t ffm_stream_handle(const ffm_function *function, const ffm_operation *operation)
{
    return operation->stream == 0 && function->per_thread_stream ? PER_THREAD_HANDLE : operation->stream;
}

uint64_t ffm_stream_key(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread)
{
    if (ffm_stream_handle(function, operation) == PER_THREAD_HANDLE)
        return PER_THREAD_STREAM + thread->number;
    return operation->stream == LEGACY_HANDLE ? 0 : operation->stream;
}

static event_record *slot(uint64_t event)
{
    return &events.table[(event >> 4) * 0x9E3779B97F4A7C15ULL >> 52];
}

void ffm_waits_note(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread)
{
    if (function->kind != FFM_KIND_ORDER || operation->result != 0 || !ffm_is_named(function, "cuEventRecord"))
        return;
    pthread_mutex_lock(&events.lock);
    *slot(operation->handle) =
        (event_record){operation->handle, ffm_stream_key(function, operation, thread), operation->start};
    pthread_mutex_unlock(&events.lock);
}

static bool event_cover(const ffm_operation *operation, ffm_cover *cover)
{
    pthread_mutex_lock(&events.lock);
    const event_record *last = slot(operation->handle);
    bool known = last->event == operation->handle;
    *cover = (ffm_cover){.stream = known ? last->stream : NO_STREAM, .before = known ? last->recorded : 0};
    pthread_mutex_unlock(&events.lock);
    return true;
}

bool ffm_waited(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread,
                ffm_cover *cover)
{
    uint64_t key = ffm_stream_key(function, operation, thread);
    *cover = (ffm_cover){.stream = NO_STREAM, .before = operation->start + 1};
    switch (function->kind) {
    case FFM_KIND_SYNCHRONIZATION:
    case FFM_KIND_QUERY:
        if (operation->result != 0)
            return false;
        if (ffm_is_named(function, "cuEvent"))
            return event_cover(operation, cover);
        if (ffm_is_named(function, "cuStream"))
            cover->stream = key;
        else
            cover->everything = function->handle < 0; /* with a handle, it is for a context that need not be ours */
        return true;
    case FFM_KIND_TRANSFER:
    case FFM_KIND_SET:
        if (operation->waits == 0 && function->asynchronous)
            return false;
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
