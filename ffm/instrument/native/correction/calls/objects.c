/* Streams, contexts, captures and modules: what corrections must know about them. */
#include <string.h>

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

/* Whether the program was given its context once more, as by cuCtxAttach: detaching from it then need not end it. */
static bool referred_again;

/* A context was created or made current. */
static uint64_t meet_context(const ffm_program_call *call)
{
    uint64_t result = ffm_forward(call);
    if (result != 0)
        return result;
    if (call->function->result < 0) {
        ffm_context_seen(ffm_argument(call, call->function->handle));
        return result;
    }
    const uint64_t given = *(const uint64_t *)ffm_argument(call, call->function->result);
    if (ffm_context_is(given))
        __atomic_store_n(&referred_again, true, __ATOMIC_RELEASE);
    ffm_context_seen(given);
    return result;
}

static uint64_t end_context(const ffm_program_call *call)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
    ffm_kernels_forget();
    uint64_t result = ffm_forward(call);
    if (result == 0) {
        ffm_lifetime_context_ends();
        __atomic_store_n(&referred_again, false, __ATOMIC_RELEASE);
    }
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

/* Memory and streams of several GPUs, or parts of one, at once: orders would have to span them. */
static uint64_t stop(const ffm_program_call *call)
{
    ffm_stop(FFM_STOP_SHARED);
    return ffm_forward(call);
}

/* A context that is referred to more than once lasts for as long as something refers to it, which only the driver
 * knows. */
static uint64_t detach_context(const ffm_program_call *call)
{
    return __atomic_load_n(&referred_again, __ATOMIC_ACQUIRE) ? stop(call) : end_context(call);
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

/* The tables that CUDA's runtime asks for: by them it checks the driver, loads code, finds contexts, stores what
 * belongs to a context or a thread, and meets tools (ZLUDA, dark_api/src/lib.rs). What a program enqueues through the
 * runtime goes through public functions, on which all that ffm records relies. */
static const uint8_t tables_of_runtime[][16] = {
    {0xf8, 0xcf, 0xf9, 0x51, 0x21, 0x46, 0x8b, 0x4e, 0xb9, 0xe2, 0xfb, 0x46, 0x9e, 0x7c, 0x0d, 0xd9},
    {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9},
    {0x42, 0xd8, 0x5a, 0x81, 0x23, 0xf6, 0xcb, 0x47, 0x82, 0x98, 0xf6, 0xe7, 0x8a, 0x3a, 0xec, 0xdc},
    {0x21, 0x31, 0x8c, 0x60, 0x97, 0x14, 0x32, 0x48, 0x8c, 0xa6, 0x41, 0xff, 0x73, 0x24, 0xc8, 0xf2},
    {0xa0, 0x94, 0x79, 0x8c, 0x2e, 0x74, 0x2e, 0x74, 0x93, 0xf2, 0x08, 0x00, 0x20, 0x0c, 0x0a, 0x66},
    {0xc6, 0x93, 0x33, 0x6e, 0x11, 0x21, 0xdf, 0x11, 0xa8, 0xc3, 0x68, 0xf3, 0x55, 0xd8, 0x95, 0x93},
    {0x0c, 0xa5, 0x0b, 0x8c, 0x10, 0x04, 0x92, 0x9a, 0x89, 0xa7, 0xd0, 0xdf, 0x10, 0xe7, 0x72, 0x86},
    {0x19, 0x5b, 0xcb, 0xf4, 0xd6, 0x7d, 0x02, 0x4a, 0xac, 0xc5, 0x1d, 0x29, 0xce, 0xa6, 0x31, 0xae},
    {0xb1, 0x05, 0x41, 0xe1, 0xf7, 0xc7, 0xc7, 0x4a, 0x9f, 0x64, 0xf2, 0x23, 0xbe, 0x99, 0xf1, 0xe2},
    {0xd4, 0x08, 0x20, 0x55, 0xbd, 0xe6, 0x70, 0x4b, 0x8d, 0x34, 0xba, 0x12, 0x3c, 0x66, 0xe1, 0xf2},
    {0x26, 0x3e, 0x88, 0x60, 0x7c, 0xd2, 0x61, 0x43, 0x92, 0xf6, 0xbb, 0xd5, 0x00, 0x6d, 0xfa, 0x7e}};

static bool is_of_runtime(const void *key)
{
    for (size_t i = 0; key != NULL && i < sizeof tables_of_runtime / sizeof *tables_of_runtime; i++)
        if (memcmp(key, tables_of_runtime[i], sizeof *tables_of_runtime) == 0)
            return true;
    return false;
}

/* The driver's private interface: calls that ffm does not see may enqueue work. */
static uint64_t hand_out_table(const ffm_program_call *call)
{
    ffm_held_unknowable();
    const uint64_t result = ffm_forward(call);
    if (result == CUDA_SUCCESS && !is_of_runtime((const void *)call->arguments[1]))
        ffm_order_unseen();
    return result;
}

/* What a download that is pending waits for may use the object. */
static uint64_t release(const ffm_program_call *call)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
    return ffm_forward(call);
}

ffm_handler ffm_objects_handler(const ffm_function *function)
{
    if (function->shape == FFM_SHAPE_NARROW)
        return NULL;
    if (function->kind == FFM_KIND_RELEASE)
        return release;
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
        return function->handle < 0 ? release_primary : detach_context;
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
