/* Allocation and free. */
#include <stddef.h>

#include "arguments.h"
#include "blocks.h"
#include "call_handlers.h"
#include "clock_payments.h"
#include "driver.h"
#include "effects.h"
#include "extras.h"
#include "held.h"
#include "host_memory.h"
#include "late.h"
#include "order.h"
#include "pool.h"
#include "state.h"

/* The memory no longer holds what it did, whoever freed it. */
static void follow(uint64_t address, size_t bytes, ffm_pool_memory memory)
{
    ffm_held_overwritten(address, bytes);
    ffm_pool_allocated(address, bytes, memory);
}

static uint64_t allocate(const ffm_program_call *call)
{
    uint64_t *address = (uint64_t *)ffm_argument(call, call->function->result);
    size_t bytes = ffm_argument(call, call->function->bytes);
    bool planned = ffm_is_planned(call, FFM_REMEDY_POOL_ALLOCATION) && !ffm_state_capturing();
    if (ffm_may(call, FFM_REMEDY_POOL_ALLOCATION) && address != NULL && bytes > 0 && ffm_pool_take(bytes, address)) {
        FFM_COUNT(allocations);
        ffm_count(&call->tally->corrected);
        return FFM_CUDA_SUCCESS;
    }
    uint64_t result = ffm_forward(call);
    if (result == FFM_CUDA_SUCCESS)
        follow(*address, bytes, planned ? FFM_MEMORY_PLANNED : FFM_MEMORY_PLAIN);
    return result;
}

/* From a pool of the driver. While a stream is captured, the memory may belong to a graph and be allocated at each of
 * its launches. Pools of anything but the device's own memory are not tracked, and kernels may access those of the
 * host. */
static uint64_t allocate_ordered(const ffm_program_call *call)
{
    const uint64_t *address = (const uint64_t *)ffm_argument(call, call->function->result);
    ffm_order_stream(ffm_argument(call, call->function->stream), call->function->per_thread_stream);
    bool captured = ffm_state_capturing();
    uint64_t result = ffm_forward(call);
    if (result != FFM_CUDA_SUCCESS || captured || ffm_state_capturing())
        return result;
    if (ffm_place_of(*address) == FFM_PLACE_DEVICE)
        follow(*address, ffm_argument(call, call->function->bytes), FFM_MEMORY_ORDERED);
    else
        ffm_host_memory_mapped();
    return result;
}

/* The driver frees the block. Forget it first, because another thread can get its address at once. */
static uint64_t release(const ffm_program_call *call, uint64_t address)
{
    if (address == 0)
        return ffm_forward(call); /* which frees nothing, and waits for nothing */
    ffm_pool_freed(address);
    ffm_held_lost();
    ffm_host_memory_freed(address); /* managed memory is freed by the same call */
    ffm_order_mark before = ffm_order_now();
    uint64_t result = ffm_forward(call);
    if (result == FFM_CUDA_SUCCESS) {
        ffm_order_waited(FFM_SCOPE_CONTEXT, 0, before);
        ffm_late_settle();
    }
    return result;
}

/* The driver takes stream-ordered memory back at once: it "assumes that all accesses to the allocation are complete and
 * performs no further synchronization" (CUDA C++ Programming Guide, "Stream Ordered Memory Allocator"). */
static uint64_t release_ordered(const ffm_program_call *call, uint64_t address)
{
    ffm_pool_freed(address);
    ffm_held_lost();
    ffm_order_pay();
    return ffm_forward(call);
}

static uint64_t hoist(const ffm_program_call *call, uint64_t address)
{
    const bool timed = call->site->actions & FFM_REMEDY_CLOCK;
    uint64_t *why = NULL;
    if (ffm_effects_under_way())
        why = &ffm_counters->waits_host_memory;
    else if (timed && !ffm_clock_payments_possible())
        why = &ffm_counters->waits_unseen;
    if (why != NULL) {
        /* Something may rely on the free's wait; the block is pooled anyway. */
        ffm_order_mark before = ffm_order_now();
        const int waited = ffm_driver.context_synchronize();
        ffm_state_answered(waited);
        if (waited != FFM_CUDA_SUCCESS)
            return (uint64_t)waited;
        ffm_order_waited(FFM_SCOPE_CONTEXT, 0, before);
        ffm_count(why);
        ffm_count(&call->tally->waited);
    } else if (ffm_order_fence(FFM_SCOPE_CONTEXT, 0)) {
        if (timed)
            ffm_clock_payments_owe();
        FFM_COUNT(free_waits);
        ffm_count(&call->tally->corrected);
    } else {
        FFM_COUNT(waits_driver);
        ffm_count(&call->tally->waited);
        return release(call, address);
    }
    ffm_pool_put(address);
    FFM_COUNT(frees);
    return FFM_CUDA_SUCCESS;
}

static uint64_t free_device(const ffm_program_call *call)
{
    uint64_t address = ffm_argument(call, call->function->destination);
    switch (ffm_pool_state(address)) {
    case FFM_BLOCK_IDLE: /* freed twice: the driver would consider it valid */
        return FFM_CUDA_INVALID_VALUE;
    case FFM_BLOCK_POOLABLE:
        if (ffm_may(call, FFM_REMEDY_POOL_FREE))
            return hoist(call, address);
        return release(call, address);
    case FFM_BLOCK_ORDERED:
        return release_ordered(call, address);
    default:
        return release(call, address);
    }
}

/* Also for memory that was not allocated in a stream's order. Like all work, it comes after the fences of its stream.
 */
static uint64_t free_later(const ffm_program_call *call)
{
    uint64_t address = ffm_argument(call, call->function->destination);
    if (ffm_pool_state(address) == FFM_BLOCK_IDLE)
        return FFM_CUDA_INVALID_VALUE;
    ffm_order_stream(ffm_argument(call, call->function->stream), call->function->per_thread_stream);
    ffm_pool_freed(address);
    ffm_held_lost();
    return ffm_forward(call);
}

static uint64_t allocate_other(const ffm_program_call *call)
{
    ffm_operation operation = {0};
    ffm_arguments_before(call->function, call->arguments, &operation);
    uint64_t result = ffm_forward(call);
    operation.result = (int32_t)result;
    ffm_arguments_after(call->function, call->arguments, &operation);
    if (result == FFM_CUDA_SUCCESS)
        ffm_host_memory_allocated(call->function, call->arguments, &operation);
    return result;
}

static uint64_t allocate_pitched(const ffm_program_call *call)
{
    uint64_t result = ffm_forward(call);
    const uint64_t *a = call->arguments; /* (address, pitch, width, height, element) */
    if (result == FFM_CUDA_SUCCESS)
        follow(*(const uint64_t *)a[0], *(const size_t *)a[1] * a[3], FFM_MEMORY_PLAIN);
    return result;
}

static uint64_t free_host(const ffm_program_call *call)
{
    uint64_t address = ffm_argument(call, call->function->destination);
    uint64_t result = ffm_forward(call);
    if (result == FFM_CUDA_SUCCESS)
        ffm_host_memory_freed(address);
    return result;
}

static uint64_t map_host(const ffm_program_call *call)
{
    uint64_t result = ffm_forward(call);
    if (result == FFM_CUDA_SUCCESS)
        ffm_host_memory_mapped();
    return result;
}

static uint64_t view(const ffm_program_call *call)
{
    ffm_operation operation = {0};
    ffm_arguments_before(call->function, call->arguments, &operation);
    const uint64_t result = ffm_forward(call);
    if (result == FFM_CUDA_SUCCESS && ffm_host_memory_holds(operation.source))
        ffm_host_memory_mapped();
    return result;
}

/* Another process or device gets a handle to the memory. It may read or write there after any wait of the program, of
 * which it may learn unseen. Some functions name the memory by a handle. */
static uint64_t share(const ffm_program_call *call)
{
    if (call->function->source >= 0)
        ffm_pool_share(ffm_argument(call, call->function->source));
    ffm_held_unknowable();
    const uint64_t result = ffm_forward(call);
    if (result == FFM_CUDA_SUCCESS)
        ffm_stop(FFM_STOP_SHARED);
    return result;
}

ffm_handler ffm_memory_handler(const ffm_function *function)
{
    bool narrow = function->shape == FFM_SHAPE_NARROW;
    switch (function->kind) {
    case FFM_KIND_ALLOCATION:
        if (function->memory == FFM_MEMORY_DEVICE && !narrow)
            return function->shape == FFM_SHAPE_PITCHED ? allocate_pitched : allocate;
        if (function->memory == FFM_MEMORY_ASYNCHRONOUS)
            return allocate_ordered;
        return narrow ? NULL : allocate_other;
    case FFM_KIND_FREE:
        if (function->memory == FFM_MEMORY_DEVICE)
            return narrow ? NULL : free_device;
        if (function->memory == FFM_MEMORY_PINNED || function->memory == FFM_MEMORY_REGISTERED)
            return free_host;
        return function->memory == FFM_MEMORY_ASYNCHRONOUS && function->destination >= 0 ? free_later : NULL;
    case FFM_KIND_MAPPING:
        return map_host;
    case FFM_KIND_VIEW:
        return view;
    case FFM_KIND_SHARING:
        return share;
    default:
        return NULL;
    }
}
