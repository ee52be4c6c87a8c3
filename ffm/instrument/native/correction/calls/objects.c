/* Streams, contexts, captures and modules: what corrections must know about them. */
#include <cuda.h>

#include "call_handlers.h"
#include "clock_payments.h"
#include "delivery.h"
#include "extras.h"
#include "held.h"
#include "host_memory.h"
#include "kernel_arguments.h"
#include "lifetime.h"
#include "order.h"
#include "state.h"

enum { NON_BLOCKING = 1 }; /* CU_STREAM_NON_BLOCKING */

static uint64_t make_stream(const ffm_program_call *call)
{
    uint64_t result = ffm_forward(call);
    if (result == 0)
        ffm_order_stream_made(*(const uint64_t *)ffm_argument(call, call->function->result),
                              ffm_argument(call, call->function->flags) & NON_BLOCKING);
    return result;
}

static uint64_t destroy_stream(const ffm_program_call *call)
{
    ffm_order_stream_gone(ffm_argument(call, call->function->handle));
    return ffm_forward(call);
}

/* A context was created or made current. */
static uint64_t meet_context(const ffm_program_call *call)
{
    uint64_t result = ffm_forward(call);
    if (result == 0 && call->function->result >= 0)
        ffm_context_seen(*(const uint64_t *)ffm_argument(call, call->function->result));
    else if (result == 0)
        ffm_context_seen(ffm_argument(call, call->function->handle));
    return result;
}

static uint64_t end_context(const ffm_program_call *call)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
    ffm_kernels_forget();
    uint64_t result = ffm_forward(call);
    if (result == 0)
        ffm_lifetime_context_ends();
    return result;
}

/* Releasing the primary context destroys it only with the last reference. */
static uint64_t release_primary(const ffm_program_call *call)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
    ffm_kernels_forget();
    uint64_t result = ffm_forward(call);
    if (result == 0 && !ffm_primary_active(call->arguments[0]))
        ffm_lifetime_context_ends();
    return result;
}

/* Memory and streams of several GPUs, or parts of one, at once: orders would have to span them. Or a context that lasts
 * for as long as something refers to it, which only the driver knows. */
static uint64_t stop(const ffm_program_call *call)
{
    ffm_stop(FFM_STOP_SHARED);
    return ffm_forward(call);
}

/* A thread's own default stream must be known, and ordered, before it is captured. */
static uint64_t begin_capture(const ffm_program_call *call)
{
    ffm_order_stream(ffm_argument(call, call->function->stream), call->function->per_thread_stream);
    ffm_clock_payments_settle();
    ffm_capture(true);
    uint64_t result = ffm_forward(call);
    if (result != 0)
        ffm_capture(false);
    return result;
}

/* A capture that failed is over too, once its end was requested; any other error leaves it under way. */
static uint64_t end_capture(const ffm_program_call *call)
{
    uint64_t result = ffm_forward(call);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
        result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
        ffm_capture(false);
    return result;
}

/* Managed variables are accessed by name. The first argument receives the address. */
static uint64_t find_variable(const ffm_program_call *call)
{
    uint64_t result = ffm_forward(call);
    if (result == CUDA_SUCCESS && call->arguments[0] != 0 && ffm_is_managed(*(const uint64_t *)call->arguments[0]))
        ffm_host_memory_mapped();
    return result;
}

/* The handles of its kernels may soon belong to others. */
static uint64_t unload(const ffm_program_call *call)
{
    ffm_kernels_forget();
    return ffm_forward(call);
}

/* The driver's private interface: calls that ffm does not see may enqueue work. */
static uint64_t hand_out_table(const ffm_program_call *call)
{
    ffm_held_unknowable();
    return ffm_forward(call);
}

ffm_handler ffm_objects_handler(const ffm_function *function)
{
    if (function->shape == FFM_SHAPE_NARROW)
        return NULL;
    switch (function->effect) {
    case FFM_EFFECT_MAKE_STREAM:
        return make_stream;
    case FFM_EFFECT_END_STREAM:
        return destroy_stream;
    case FFM_EFFECT_ENTER_CONTEXT:
        return meet_context;
    case FFM_EFFECT_END_CONTEXT:
        return end_context;
    case FFM_EFFECT_RELEASE_CONTEXT:
        return function->handle < 0 ? release_primary : stop;
    case FFM_EFFECT_PART_DEVICE:
    case FFM_EFFECT_REACH_PEER:
    case FFM_EFFECT_SHARE_EVENT:
        return stop;
    case FFM_EFFECT_BEGIN_CAPTURE:
        return begin_capture;
    case FFM_EFFECT_END_CAPTURE:
        return end_capture;
    case FFM_EFFECT_FIND_VARIABLE:
        return find_variable;
    case FFM_EFFECT_UNLOAD_CODE:
        return unload;
    case FFM_EFFECT_HAND_OUT_CALLS:
        return hand_out_table;
    default:
        return NULL;
    }
}
