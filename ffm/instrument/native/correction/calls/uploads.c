#include "transfers.h"

#include <string.h>

#include "cache.h"
#include "clock_payments.h"
#include "driver.h"
#include "effects.h"
#include "extras.h"
#include "held.h"
#include "host_memory.h"
#include "order.h"
#include "pool.h"
#include "staging.h"
#include "state.h"

typedef struct {
    uint64_t to;
    const void *from;
    size_t bytes;
    uint64_t stream;
    uint64_t before; /* ffm_held_now */
} upload;

/* The synchronous calls have no stream argument: they use a default stream. */
static upload upload_of(const ffm_program_call *call)
{
    const ffm_function *function = call->function;
    return (upload){.to = ffm_argument(call, function->destination),
                    .from = (const void *)ffm_argument(call, function->source),
                    .bytes = ffm_argument(call, function->bytes),
                    .stream = ffm_order_stream(ffm_argument(call, function->stream), function->per_thread_stream),
                    .before = ffm_held_now()};
}

/* The destination was written; records the content if it is certain. */
static void note(const upload *it, const ffm_content_key *content)
{
    if (content != NULL)
        ffm_held_uploaded(it->to, content, it->before);
    else
        ffm_held_overwritten(it->to, it->bytes);
}

static uint64_t as_it_is(const ffm_program_call *call, const upload *it)
{
    uint64_t result = ffm_forward(call);
    note(it, NULL);
    return result;
}

static uint64_t fall_back(const ffm_program_call *call, const upload *it, uint64_t *why)
{
    uint64_t result = ffm_fall_back(call, why);
    note(it, NULL);
    return result;
}

/* Whether the program may be timing the call: then the wait is made up for when it reads a clock. */
static bool is_timed(const ffm_program_call *call)
{
    return call->site->actions & FFM_REMEDY_CLOCK;
}

/* The upload was enqueued: continue, or wait as the call does. */
static uint64_t go_on(const ffm_program_call *call, const upload *it, bool wait)
{
    if (!wait && ffm_order_fence(FFM_SCOPE_STREAM, it->stream)) {
        if (is_timed(call))
            ffm_clock_payments_owe();
        FFM_COUNT(transfer_waits);
        return FFM_CUDA_SUCCESS;
    }
    ffm_order_mark before = ffm_order_now();
    int result = ffm_driver.stream_synchronize(it->stream);
    ffm_state_answered(result);
    if (result == FFM_CUDA_SUCCESS)
        ffm_order_waited(FFM_SCOPE_STREAM, it->stream, before);
    return (uint64_t)result;
}

static uint64_t finish(const ffm_program_call *call, const upload *it, bool wait, uint64_t *count)
{
    ffm_count(count);
    ffm_count(&call->tally->corrected);
    return go_on(call, it, wait);
}

/* Copy the current bytes into pinned memory. What is hashed is exactly what is sent, even if the source is written
 * meanwhile. */
static bool stage(const upload *it, bool keep, bool at_once)
{
    ffm_staged piece;
    if (!ffm_staging_take(it->bytes, &piece))
        return false;
    memcpy(piece.memory, it->from, it->bytes);
    if (ffm_driver.upload(it->to, piece.memory, it->bytes, it->stream) != FFM_CUDA_SUCCESS) {
        ffm_staging_release(&piece);
        return false;
    }
    if (keep) {
        ffm_content_key content = ffm_content_of(piece.memory, it->bytes);
        ffm_cache_keep(&content, it->to, it->stream, at_once);
        note(it, ffm_order_after_all(it->stream) ? &content : NULL);
    } else {
        note(it, NULL);
    }
    if (!ffm_staging_enqueued(&piece, it->stream)) {
        ffm_driver.stream_synchronize(it->stream);
        ffm_staging_release(&piece);
    }
    return true;
}

uint64_t ffm_upload(const ffm_program_call *call)
{
    upload it = upload_of(call);
    ffm_host_memory_sent(it.from, it.bytes);
    bool reuse = ffm_may(call, FFM_REMEDY_REUSE), staged = reuse || ffm_may(call, FFM_REMEDY_ASYNCHRONOUS);
    /* Invalid calls, and calls that are not from the host to known device memory, are left to the driver. */
    if (!staged || it.bytes == 0 || it.from == NULL || !ffm_pool_holds(it.to, it.bytes))
        return as_it_is(call, &it);
    /* The GPU may be about to write the source: then its bytes will have changed when the copy's turn comes. */
    if (ffm_effects_under_way())
        return fall_back(call, &it, &ffm_counters->waits_host_memory);
    if (is_timed(call) && !ffm_clock_payments_possible())
        return fall_back(call, &it, &ffm_counters->waits_unseen);
    bool wait = !(call->site->actions & FFM_REMEDY_NO_WAIT);
    if (reuse) {
        ffm_content_key content = ffm_content_of(it.from, it.bytes);
        bool orderly = ffm_order_after_all(it.stream);
        if (orderly && ffm_held_at(it.to, &content))
            return finish(call, &it, wait, &ffm_counters->uploads_nothing);
        if (ffm_cache_copy(&content, it.to, it.stream, false)) {
            note(&it, orderly ? &content : NULL);
            return finish(call, &it, wait, &ffm_counters->uploads_copied);
        }
    }
    if (stage(&it, reuse, false))
        return finish(call, &it, wait, &ffm_counters->uploads_staged);
    return fall_back(call, &it, &ffm_counters->waits_driver);
}

/* Where an upload's bytes come from, and when they are read there. */
typedef enum {
    SOURCE_OTHER,  /* not read by the host, or perhaps not */
    SOURCE_STAGED, /* before the call returns */
    SOURCE_LATER   /* when the stream reaches the copy */
} source_kind;

static source_kind source_of(const upload *it)
{
    uint64_t first = (uint64_t)it->from, last = first + it->bytes - 1;
    ffm_place place = ffm_place_of(first);
    if (place != ffm_place_of(last))
        return SOURCE_OTHER;
    if (place == FFM_PLACE_HOST && ffm_host_memory_holds(first) && ffm_host_memory_holds(last))
        return SOURCE_LATER;
    if (place != FFM_PLACE_PAGEABLE)
        return SOURCE_OTHER;
    return ffm_ordinary_memory_is_read_later() ? SOURCE_LATER : SOURCE_STAGED;
}

static uint64_t leave(const ffm_program_call *call, uint64_t *why)
{
    ffm_count(why);
    ffm_count(&call->tally->waited);
    return ffm_enqueue(call);
}

/* Whether the bytes are on the device, or will be in the stream's order; otherwise they must be sent unchanged. */
static bool reuse_or_stage(const ffm_program_call *call, const upload *it)
{
    ffm_content_key content = ffm_content_of(it->from, it->bytes);
    bool orderly = ffm_order_after_all(it->stream);
    if (orderly && ffm_held_at(it->to, &content) && ffm_order_barrier()) {
        FFM_COUNT(uploads_nothing);
    } else if (ffm_cache_copy(&content, it->to, it->stream, true)) {
        note(it, orderly ? &content : NULL);
        FFM_COUNT(uploads_copied);
    } else {
        if (!stage(it, true, true))
            return false;
        FFM_COUNT(uploads_kept);
        return true;
    }
    ffm_count(&call->tally->corrected);
    return true;
}

/* The source is compared in its current state. The program may write it until the copy reads it, in an order that it
 * controls: a stream can wait for a value, or a kernel for a word, that the CPU sets after its writes. So a source that
 * the copy reads later is compared only if it would be read at once. */
uint64_t ffm_upload_asynchronous(const ffm_program_call *call)
{
    if (!ffm_may(call, FFM_REMEDY_REUSE))
        return ffm_enqueue(call);
    upload it = upload_of(call);
    source_kind source = it.bytes == 0 || it.from == NULL ? SOURCE_OTHER : source_of(&it);
    if (source == SOURCE_OTHER)
        return ffm_enqueue(call);
    if (!ffm_pool_holds(it.to, it.bytes))
        return leave(call, &ffm_counters->uploads_unfollowed);
    bool waited = call->site->actions & FFM_REMEDY_NO_WAIT;
    if (waited ? ffm_effects_under_way() : ffm_effects_may_write((uint64_t)it.from, it.bytes))
        return leave(call, &ffm_counters->waits_host_memory);
    if (source == SOURCE_LATER && !ffm_order_begins_at_once(it.stream))
        return leave(call, &ffm_counters->uploads_pinned);
    ffm_host_memory_sent(it.from, it.bytes);
    if (!reuse_or_stage(call, &it))
        return leave(call, &ffm_counters->waits_driver);
    /* If the calls were seen to wait but nothing relied on it, their order is kept; otherwise there is none to keep. */
    return waited ? go_on(call, &it, false) : FFM_CUDA_SUCCESS;
}
