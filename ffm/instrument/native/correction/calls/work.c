/* Work for the GPU: transfers, sets, launches, host functions. */
#include <stddef.h>

#include <cuda.h>

#include "arguments.h"
#include "call_handlers.h"
#include "effects.h"
#include "held.h"
#include "host_memory.h"
#include "kernel_arguments.h"
#include "order.h"
#include "transfers.h"

static uint64_t stream_of(const ffm_program_call *call, uint64_t handle)
{
    return ffm_order_stream(handle, call->function->per_thread_stream);
}

uint64_t ffm_enqueue(const ffm_program_call *call)
{
    const ffm_function *function = call->function;
    ffm_operation operation = {0};
    ffm_arguments_before(function, call->arguments, &operation);
    uint64_t stream = stream_of(call, operation.stream);
    if (function->direction == FFM_DIRECTION_HOST_TO_DEVICE && function->shape == FFM_SHAPE_PLAIN)
        ffm_host_memory_sent((const void *)operation.source, operation.bytes);
    uint64_t result = ffm_forward(call);
    if (function->kind == FFM_KIND_TRANSFER && function->shape == FFM_SHAPE_PLAIN && operation.bytes != 0)
        ffm_held_overwritten(operation.destination, operation.bytes);
    else
        ffm_held_lost();
    bool to_host = ffm_host_memory_holds(operation.destination), from_host = ffm_host_memory_holds(operation.source);
    if (result == 0 && function->kind == FFM_KIND_TRANSFER && function->shape == FFM_SHAPE_PLAIN &&
        !ffm_host_memory_open() && (to_host || from_host)) {
        if (to_host)
            ffm_effect_of_transfer(stream, operation.destination, operation.bytes, false);
        if (from_host)
            ffm_effect_of_transfer(stream, operation.source, operation.bytes, true);
        return result;
    }
    bool opaque = function->shape == FFM_SHAPE_BATCH || function->shape == FFM_SHAPE_BATCH_3D ||
                  function->shape == FFM_SHAPE_OPAQUE || function->shape == FFM_SHAPE_NARROW;
    if (result == 0 && (opaque || ffm_host_memory_open() || to_host || from_host))
        ffm_effect(stream);
    return result;
}

/* Writes of values by the GPU, and its waits for values. What it waits for may depend on the CPU, which must then wait
 * for it only where the program does. */
static uint64_t order_values(const ffm_program_call *call)
{
    const ffm_function *function = call->function;
    uint64_t stream = stream_of(call, ffm_argument(call, function->stream));
    ffm_order_record();
    uint64_t result = ffm_forward(call);
    ffm_held_lost();
    if (result == 0 && (function->destination < 0 || ffm_host_memory_open() ||
                        ffm_host_memory_holds(call->arguments[function->destination])))
        ffm_effect(stream);
    return result;
}

/* Only notes the stream that it means: a thread's own default stream must be known before it is used. */
static uint64_t note_stream(const ffm_program_call *call)
{
    stream_of(call, ffm_argument(call, call->function->stream));
    uint64_t result = ffm_forward(call);
    if (call->function->kind == FFM_KIND_TRANSFER)
        ffm_held_lost();
    return result;
}

/* Code that runs on the CPU in the stream's order, or work that cannot be inspected. */
static uint64_t enqueue_unknown(const ffm_program_call *call)
{
    uint64_t stream = stream_of(call, ffm_argument(call, call->function->stream));
    ffm_order_record();
    uint64_t result = ffm_forward(call);
    ffm_held_lost();
    if (result == 0)
        ffm_effect(stream);
    return result;
}

/* Whether a kernel may begin while the one before it in its stream still runs. */
static bool begins_early(const ffm_program_call *call)
{
    const CUlaunchConfig *configuration = (const CUlaunchConfig *)ffm_argument(call, call->function->source);
    if (call->function->shape != FFM_SHAPE_LAUNCH_CONFIGURATION || configuration == NULL)
        return false;
    for (unsigned i = 0; configuration->attrs != NULL && i < configuration->numAttrs; i++)
        if (configuration->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
            return true;
    return false;
}

static uint64_t launch(const ffm_program_call *call)
{
    ffm_operation operation = {0};
    ffm_arguments_before(call->function, call->arguments, &operation);
    uint64_t stream = stream_of(call, operation.stream);
    bool reaches = ffm_host_memory_open();
    if (!reaches && ffm_kernel_reaches_host(call)) {
        reaches = true;
        ffm_host_memory_mapped(); /* the kernel may keep the address where later ones find it */
    }
    if (reaches || begins_early(call))
        ffm_order_record();
    uint64_t result = ffm_forward(call);
    ffm_held_lost();
    if (result == 0 && reaches)
        ffm_effect(stream);
    return result;
}

static ffm_handler transfer_handler(const ffm_function *function)
{
    const bool plain = function->shape == FFM_SHAPE_PLAIN;
    const bool up = function->direction == FFM_DIRECTION_HOST_TO_DEVICE;
    const bool down = function->direction == FFM_DIRECTION_DEVICE_TO_HOST;
    if (function->asynchronous)
        return plain && (up || function->direction == FFM_DIRECTION_GENERIC) ? ffm_upload_asynchronous : ffm_enqueue;
    if (plain && up)
        return ffm_upload;
    if (plain && down)
        return ffm_download;
    /* Synchronous copies between host and device are done when the call returns. */
    return up || down ? note_stream : ffm_enqueue;
}

ffm_handler ffm_work_handler(const ffm_function *function)
{
    switch (function->kind) {
    case FFM_KIND_TRANSFER:
        return transfer_handler(function);
    case FFM_KIND_SET:
        return ffm_enqueue;
    case FFM_KIND_LAUNCH:
        return function->parameters >= 0 ? launch : enqueue_unknown;
    case FFM_KIND_HOST_FUNCTION:
        return enqueue_unknown;
    case FFM_KIND_ORDER:
        if (function->effect == FFM_EFFECT_WRITE_VALUE || function->effect == FFM_EFFECT_HOLD)
            return order_values;
        return function->stream >= 0 ? note_stream : NULL;
    case FFM_KIND_MIGRATION:
        return note_stream;
    default:
        return NULL;
    }
}
