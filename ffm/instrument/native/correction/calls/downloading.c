#include "downloads.h"

#include "clock_payments.h"
#include "delivery.h"
#include "driver.h"
#include "effects.h"
#include "host_memory.h"
#include "order.h"
#include "pool.h"
#include "transfers.h"

static bool enqueue(const ffm_download_late *late, uint64_t from)
{
    return ffm_driver.download(late->into, from, late->bytes, late->stream) == FFM_CUDA_SUCCESS &&
           ffm_driver.set_words((uint64_t)late->done, 1, 1, late->stream) == FFM_CUDA_SUCCESS;
}

/* As the uncorrected call does; everything it waited for is done. */
static uint64_t download_now(const ffm_program_call *call, uint64_t stream)
{
    uint64_t to = ffm_argument(call, call->function->destination);
    ffm_downloads_deliver(to, to + ffm_argument(call, call->function->bytes), &ffm_counters->deliveries_called);
    ffm_order_mark before = ffm_order_now();
    uint64_t result = ffm_forward(call);
    if (result == FFM_CUDA_SUCCESS) {
        ffm_order_waited(FFM_SCOPE_STREAM, stream, before);
        ffm_late_settle();
    }
    return result;
}

/* Start a planned download so that it can be delivered later. Returns NULL, or the counter of what is in the way; then
 * nothing is under way. */
static uint64_t *defer(const ffm_program_call *call, ffm_download_late *late, uint64_t from)
{
    const bool timed = call->site->actions & FFM_REMEDY_CLOCK;
    if (timed && !ffm_clock_payments_possible())
        return &ffm_counters->waits_unseen;
    if (!ffm_pool_holds(from, late->bytes))
        return &ffm_counters->waits_source;
    if (ffm_effects_under_way())
        return &ffm_counters->waits_host_memory;
    if ((!late->direct && ffm_host_memory_holds(late->to)) || !ffm_downloads_begin(late))
        return &ffm_counters->waits_destination;
    if (!enqueue(late, from)) {
        ffm_driver.stream_synchronize(late->stream);
        ffm_staging_release(&late->piece);
        return &ffm_counters->waits_driver;
    }
    ffm_downloads_close(late);
    if (ffm_order_fence(FFM_SCOPE_STREAM, late->stream)) {
        if (timed)
            ffm_clock_payments_owe();
        FFM_COUNT(transfer_waits);
    } else {
        ffm_driver.stream_synchronize(late->stream);
    }
    return NULL;
}

uint64_t ffm_download(const ffm_program_call *call)
{
    const ffm_function *function = call->function;
    ffm_download_late late = {.to = ffm_argument(call, function->destination),
                              .bytes = ffm_argument(call, function->bytes),
                              .stream = ffm_order_stream(0, function->per_thread_stream)};
    if (late.bytes == 0)
        return ffm_forward(call); /* which may wait for nothing */
    late.direct = ffm_host_memory_holds(late.to) && ffm_host_memory_holds(late.to + late.bytes - 1);
    if (!ffm_may(call, FFM_REMEDY_ASYNCHRONOUS) || !(call->site->actions & FFM_REMEDY_NO_WAIT))
        return download_now(call, late.stream);
    late.unit = call->site->unit;
    uint64_t *why = defer(call, &late, ffm_argument(call, function->source));
    if (why == NULL) {
        FFM_COUNT(downloads_staged);
        ffm_count(&call->tally->corrected);
        return FFM_CUDA_SUCCESS;
    }
    ffm_count(why);
    ffm_count(&call->tally->waited);
    return download_now(call, late.stream);
}
