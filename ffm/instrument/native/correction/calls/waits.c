/* Explicit synchronizations, and queries about the state of work. */
#include "call_handlers.h"
#include "clock_payments.h"
#include "effects.h"
#include "late.h"
#include "order.h"
#include "state.h"

typedef struct {
    ffm_scope scope;
    uint64_t handle;
} awaited;

static awaited awaited_by(const ffm_program_call *call)
{
    const ffm_function *function = call->function;
    if (function->awaits == FFM_AWAITS_STREAM)
        return (awaited){FFM_SCOPE_STREAM,
                         ffm_order_stream(ffm_argument(call, function->stream), function->per_thread_stream)};
    if (function->awaits == FFM_AWAITS_EVENT)
        return (awaited){FFM_SCOPE_EVENT, ffm_argument(call, function->handle)};
    return (awaited){FFM_SCOPE_CONTEXT, 0};
}

static uint64_t wait_for(const ffm_program_call *call, awaited work)
{
    ffm_order_mark before = ffm_order_now();
    uint64_t result = ffm_forward(call);
    if (result == 0) {
        ffm_order_waited(work.scope, work.handle, before);
        ffm_late_settle();
    }
    return result;
}

static uint64_t fall_back(const ffm_program_call *call, awaited work, uint64_t *why)
{
    ffm_count(why);
    ffm_count(&call->tally->waited);
    return wait_for(call, work);
}

static uint64_t synchronize(const ffm_program_call *call)
{
    awaited work = awaited_by(call);
    if (!ffm_may(call, FFM_REMEDY_SKIP))
        return wait_for(call, work);
    const bool timed = call->site->actions & FFM_REMEDY_CLOCK;
    if (timed && !ffm_clock_payments_possible())
        return fall_back(call, work, &ffm_counters->waits_unseen);
    uint64_t *why = &ffm_counters->waits_host_memory;
    if (!ffm_effects_under_way()) {
        if (ffm_order_fence(work.scope, work.handle)) {
            if (timed)
                ffm_clock_payments_owe();
            FFM_COUNT(synchronizations);
            ffm_count(&call->tally->corrected);
            return 0;
        }
        why = &ffm_counters->waits_driver;
    }
    return fall_back(call, work, why);
}

/* When the program queries, what removed waits promised must be over. */
static uint64_t question(const ffm_program_call *call)
{
    if (ffm_order_owes()) {
        FFM_COUNT(waits_questions);
        ffm_order_pay();
    }
    if (call->function->awaits != FFM_AWAITS_STREAM)
        return ffm_forward(call);
    ffm_order_mark before = ffm_order_now();
    uint64_t stream = ffm_order_stream(ffm_argument(call, call->function->stream), call->function->per_thread_stream);
    uint64_t result = ffm_forward(call);
    if (result == 0)
        ffm_order_waited(FFM_SCOPE_STREAM, stream, before);
    return result;
}

ffm_handler ffm_waits_handler(const ffm_function *function)
{
    if (function->kind == FFM_KIND_SYNCHRONIZATION)
        return synchronize;
    if (function->kind == FFM_KIND_QUERY || function->kind == FFM_KIND_TIMING)
        return question;
    return NULL;
}
