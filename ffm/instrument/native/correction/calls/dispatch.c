#include "dispatch.h"

#include <errno.h>
#include <pthread.h>

#include "arguments.h"
#include "bindings.h"
#include "call_handlers.h"
#include "clock.h"
#include "delivery.h"
#include "driver.h"
#include "kernel_arguments.h"
#include "plan.h"
#include "stacks.h"
#include "state.h"
#include "transfers.h"
#include "trials.h"

typedef uint64_t word;

static ffm_handler handlers[FFM_FUNCTION_COUNT];

static bool ready;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;

/* Driver calls made inside driver calls are the driver's own. */
static __thread enum { NO_CALLS, BETWEEN, WITHIN } calls __attribute__((tls_model("initial-exec")));

bool ffm_dispatch_between_calls(void)
{
    return calls == BETWEEN;
}

/* All hooks are in place before the first call. */
static void prepare(void)
{
    if (!ffm_driver_resolve())
        ffm_stop(FFM_STOP_FUNCTIONS);
    __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
}

/* The call frees the whole block, but its argument names only the start. */
static bool frees_host_memory(const ffm_function *function)
{
    return function->kind == FFM_KIND_FREE &&
           (function->memory == FFM_MEMORY_PINNED || function->memory == FFM_MEMORY_REGISTERED);
}

/* The rows of a box are not contiguous, and the parts of a batch can be anywhere. */
static bool works_on_spread_memory(const ffm_function *function)
{
    switch (function->shape) {
    case FFM_SHAPE_COPY_2D:
    case FFM_SHAPE_COPY_3D:
    case FFM_SHAPE_COPY_3D_PEER:
    case FFM_SHAPE_BATCH:
    case FFM_SHAPE_BATCH_3D:
    case FFM_SHAPE_OPAQUE:
        return true;
    default:
        return false;
    }
}

/* Deliver whatever the driver, or a kernel, may read or write for this call. */
static void deliver_for(const ffm_program_call *call)
{
    const ffm_function *function = call->function;
    if (function->kind == FFM_KIND_SYNCHRONIZATION || function->kind == FFM_KIND_QUERY ||
        handlers[call->index] == ffm_download) /* may stay pending next to others, and delivers by itself */
        return;
    ffm_operation operation = {0};
    ffm_arguments_before(function, call->arguments, &operation);
    if (operation.destination != 0 && operation.bytes != 0)
        ffm_downloads_deliver(operation.destination, operation.destination + operation.bytes,
                              &ffm_counters->deliveries_called);
    if (operation.source != 0 && operation.bytes != 0)
        ffm_downloads_deliver(operation.source, operation.source + operation.bytes, &ffm_counters->deliveries_called);
    ffm_downloads_before_call(call->arguments, function->arity);
    if (function->kind == FFM_KIND_LAUNCH)
        ffm_kernel_deliver(call);
    else if (frees_host_memory(function) || function->kind == FFM_KIND_HOST_FUNCTION ||
             works_on_spread_memory(function))
        ffm_downloads_deliver_all(&ffm_counters->deliveries_called, false);
}

uint64_t ffm_call(uint32_t index, const uint64_t *arguments, const uint64_t *frame)
{
    ffm_handler handler = handlers[index];
    const int error = errno;
    if (__builtin_expect(!__atomic_load_n(&ready, __ATOMIC_ACQUIRE), 0))
        pthread_once(&prepared, prepare);
    if (calls == WITHIN || handler == NULL)
        return ffm_call_forward(index, arguments);
    ffm_program_call call = {.index = index, .function = &ffm_catalogue[index], .arguments = arguments};
    uint64_t began_ns = 0;
    if (ffm_plan_has_function(index)) {
        began_ns = ffm_now(); /* to recognize the call is a part of what correcting costs */
        bool truncated;
        uint32_t stack = ffm_stack_of_caller(frame, call.function->name, &truncated);
        FFM_COUNT(lookup_calls);
        call.site = truncated ? NULL : ffm_plan_site(index, stack);
        if (call.site != NULL) {
            call.tally = &ffm_tallies[ffm_plan_number(call.site)];
            ffm_count(&call.tally->calls);
        } else {
            FFM_COUNT(unknown_calls);
        }
    }
    if (call.site != NULL)
        call.corrected = ffm_trial_corrects(call.site);
    calls = WITHIN;
    if (ffm_downloads_pending())
        deliver_for(&call);
    word result = handler(&call);
    calls = BETWEEN;
    if (call.site != NULL)
        ffm_trial_called(call.site, call.corrected, began_ns);
    errno = error;
    return result;
}

static uint64_t forward_only(const ffm_program_call *call)
{
    return ffm_forward(call);
}

/* Functions that can fail because device memory is short. */
static bool may_allocate(const ffm_function *function)
{
    return function->kind == FFM_KIND_ALLOCATION || function->kind == FFM_KIND_LAUNCH ||
           function->kind == FFM_KIND_MODULE || function->kind == FFM_KIND_GRAPH;
}

void ffm_dispatch_open(void)
{
    ffm_handler (*const choices[])(const ffm_function *) = {ffm_memory_handler, ffm_waits_handler, ffm_objects_handler,
                                                            ffm_work_handler};
    for (uint32_t i = 0; i < FFM_FUNCTION_COUNT; i++) {
        handlers[i] = NULL;
        for (size_t choice = 0; choice < sizeof choices / sizeof *choices && handlers[i] == NULL; choice++)
            handlers[i] = choices[choice](&ffm_catalogue[i]);
        if (handlers[i] == NULL && may_allocate(&ffm_catalogue[i]))
            handlers[i] = forward_only;
    }
}
