#include "transfers.h"

#include <string.h>

#include "cache.h"
#include "driver.h"
#include "effects.h"
#include "held.h"
#include "host_memory.h"
#include "order.h"
#include "pool.h"
#include "staging.h"

typedef struct {
    uint64_t to;
    const void *from;
    size_t bytes;
    uint64_t stream;
    uint64_t before; /* ffm_held_now */
} upload;

static upload upload_of(const ffm_program_call *call)
{
    const ffm_function *function = call->function;
    return (upload){.to = ffm_argument(call, function->destination),
                    .from = (const void *)ffm_argument(call, function->source),
                    .bytes = ffm_argument(call, function->bytes),
                    .stream = ffm_order_stream(0, function->per_thread_stream),
                    .before = ffm_held_now()};
}

/* The destination was written; with what, where that is certain. */
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

/* The upload was enqueued: go on, or wait as the call does. */
static uint64_t finish(const ffm_program_call *call, const upload *it, bool wait, uint64_t *count)
{
    ffm_count(count);
    ffm_count(&call->tally->corrected);
    if (!wait && ffm_order_fence(FFM_SCOPE_STREAM, it->stream)) {
        FFM_COUNT(transfer_waits);
        return FFM_CUDA_SUCCESS;
    }
    ffm_order_mark before = ffm_order_now();
    int result = ffm_driver.stream_synchronize(it->stream);
    if (result == FFM_CUDA_SUCCESS)
        ffm_order_waited(FFM_SCOPE_STREAM, it->stream, before);
    return (uint64_t)result;
}

/* The bytes as they are now, in pinned memory. What is hashed is what is sent, whoever writes the source meanwhile. */
static bool stage(const upload *it, bool keep)
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
        ffm_cache_keep(&content, it->to, it->stream);
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
    /* What is wrong, or not between the host and known device memory, is the driver's business. */
    if (!staged || it.bytes == 0 || it.from == NULL || !ffm_pool_holds(it.to, it.bytes))
        return as_it_is(call, &it);
    /* The GPU may be about to write the source: then its bytes are not what they will be when the copy's turn comes. */
    if (ffm_effects_under_way())
        return fall_back(call, &it, &ffm_counters->waits_host_memory);
    bool wait = !(call->site->actions & FFM_REMEDY_NO_WAIT);
    if (reuse) {
        ffm_content_key content = ffm_content_of(it.from, it.bytes);
        bool orderly = ffm_order_after_all(it.stream);
        if (orderly && ffm_held_at(it.to, &content))
            return finish(call, &it, wait, &ffm_counters->uploads_nothing);
        if (ffm_cache_copy(&content, it.to, it.stream)) {
            note(&it, orderly ? &content : NULL);
            return finish(call, &it, wait, &ffm_counters->uploads_copied);
        }
    }
    if (stage(&it, reuse))
        return finish(call, &it, wait, &ffm_counters->uploads_staged);
    return fall_back(call, &it, &ffm_counters->waits_driver);
}
