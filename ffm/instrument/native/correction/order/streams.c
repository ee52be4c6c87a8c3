#include "streams.h"

#include <stddef.h>

enum { STREAMS = 256 };

static struct {
    ffm_known_stream made[STREAMS];
    uint32_t count;
    bool had_any, had_nonblocking;
    uint32_t threads; /* that have used their own default stream */
} streams;

/* The streams of threads are counted per generation, so that a child or a new context starts again. It is read without
 * the lock, too. */
static uint32_t generation = 1;
static __thread uint32_t own_generation __attribute__((tls_model("initial-exec")));

ffm_known_stream *ffm_streams_made(uint32_t *count)
{
    *count = streams.count;
    return streams.made;
}

ffm_known_stream *ffm_streams_find(uint64_t stream)
{
    for (uint32_t i = 0; i < streams.count; i++)
        if (streams.made[i].handle == stream)
            return &streams.made[i];
    return NULL;
}

bool ffm_streams_know(uint64_t stream)
{
    return stream == FFM_LEGACY_STREAM || stream == FFM_PER_THREAD_STREAM || ffm_streams_find(stream) != NULL;
}

bool ffm_streams_add(uint64_t stream, bool nonblocking)
{
    streams.had_any = true;
    streams.had_nonblocking = streams.had_nonblocking || nonblocking;
    if (streams.count == STREAMS)
        return false;
    ffm_known_stream *place = &streams.made[streams.count++];
    place->handle = stream;
    place->nonblocking = nonblocking;
    return true;
}

void ffm_streams_remove(ffm_known_stream *gone)
{
    ffm_handle event = gone->event;
    *gone = streams.made[--streams.count];
    streams.made[streams.count] = (ffm_known_stream){.event = event};
}

bool ffm_streams_had_nonblocking(void)
{
    return streams.had_nonblocking;
}

bool ffm_streams_only_legacy(void)
{
    return !streams.had_any && streams.threads == 0;
}

bool ffm_streams_own_noted(void)
{
    return own_generation == __atomic_load_n(&generation, __ATOMIC_RELAXED);
}

void ffm_streams_note_own(void)
{
    own_generation = generation;
    streams.threads++;
}

uint32_t ffm_streams_of_threads(void)
{
    return streams.threads;
}

bool ffm_streams_may_ask(uint64_t stream)
{
    return stream != FFM_PER_THREAD_STREAM || (streams.threads <= 1 && ffm_streams_own_noted());
}

bool ffm_streams_idle(uint64_t stream)
{
    return ffm_streams_may_ask(stream) && ffm_driver.stream_query(stream) == FFM_CUDA_SUCCESS;
}

void ffm_streams_forget(void)
{
    for (uint32_t i = 0; i < STREAMS; i++)
        streams.made[i] = (ffm_known_stream){0};
    streams.count = streams.threads = 0;
    streams.had_any = streams.had_nonblocking = false;
    __atomic_store_n(&generation, generation + 1, __ATOMIC_RELAXED);
}
