#include "watch.h"

#include <stddef.h>

#include "accesses.h"
#include "arming.h"
#include "aside.h"
#include "blocks.h"
#include "captures.h"
#include "clock.h"
#include "closed_memory.h"
#include "counters.h"
#include "delivery.h"
#include "extents.h"
#include "faults.h"
#include "keys.h"
#include "library_functions.h"
#include "managed_variables.h"
#include "mappings.h"
#include "protected_data.h"
#include "signal_mask.h"
#include "thread_memory.h"
#include "threads.h"
#include "traced.h"
#include "waiters.h"
#include "waits.h"
#include "watch_budget.h"
#include "watched.h"

/* A call that downloads to several places keeps none. */
static bool keeps(const ffm_function *function, const ffm_copy *copy, const ffm_operation *operation, uint32_t place,
                  bool delivered)
{
    return place == 1 && function->kind == FFM_KIND_TRANSFER && (function->asynchronous || delivered) &&
           copy->destination.host && !copy->source.host && copy->destination.address != 0 &&
           copy->destination.address == operation->destination && ffm_extents_keep(&copy->destination, delivered);
}

/* Whether the driver can write to another place for the copy: a call that has written when it returns. */
static bool may_deliver(const ffm_function *function, const uint64_t *arguments, const ffm_copy *copy)
{
    return function->kind == FFM_KIND_TRANSFER && function->shape == FFM_SHAPE_PLAIN && !function->asynchronous &&
           function->destination >= 0 && copy->destination.host && copy->destination.address != 0 &&
           arguments[function->destination] == copy->destination.address && !copy->source.host &&
           ffm_delivery_prepare(&copy->destination);
}

static void before_copy(const ffm_copy *copy, const ffm_operation *operation, bool kept)
{
    if (kept)
        return;
    if (copy->destination.host && copy->destination.address != 0) {
        ffm_access_over_in(copy->destination.address, ffm_box_end(&copy->destination));
        if (copy->destination.height == 1 && copy->destination.depth == 1)
            ffm_extents_end(copy->destination.address, ffm_box_end(&copy->destination));
        ffm_ranges_cut_box(&copy->destination);
    }
    /* From pageable memory, and between host addresses, the driver copies on the CPU. */
    bool on_cpu = !ffm_blocks_hold(copy->source.address) || copy->destination.host;
    if (copy->source.host && copy->source.address != 0 && on_cpu)
        ffm_access_unseen(copy->source.address, ffm_box_end(&copy->source), false, FFM_ACCESS_DRIVER, operation->stack);
}

/* The system pins the pages of registered memory, and would refuse protected ones. */
static bool registers(const ffm_function *function)
{
    return function->kind == FFM_KIND_ALLOCATION && function->memory == FFM_MEMORY_REGISTERED;
}

/* If the driver copies on the CPU, each of its accesses to a page that is shared with watched ranges would have to be
 * stepped over: ten microseconds for each vector of a copy. Without keys, that is avoided if the program's other
 * threads sleep, and so touch nothing meanwhile. */
static void open_beside(const ffm_copy *copy, bool kept)
{
    if (ffm_keys_closed(false) == 0 && ffm_threads_alone() == 0)
        return;
    if (copy->source.host && copy->source.address != 0)
        ffm_aside_driver(copy->source.address, ffm_box_end(&copy->source), false);
    if (copy->destination.host && copy->destination.address != 0 && !kept)
        ffm_aside_driver(copy->destination.address, ffm_box_end(&copy->destination), true);
}

void ffm_watch_before(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                      bool with_others)
{
    ffm_thread_memory_runs();
    ffm_keys_expel(); /* of a call that was cancelled */
    if (function->kind == FFM_KIND_HOST_FUNCTION)
        ffm_threads_lend_functions();
    ffm_keys_enter(); /* in a handler of the program, where the driver's system calls would fail */
    /* The driver frees it, and waits itself. Unregistered memory remains the program's. */
    if (function->kind == FFM_KIND_FREE && operation->destination != 0) {
        uint64_t bytes = ffm_blocks_remove(operation->destination);
        if (function->memory != FFM_MEMORY_REGISTERED)
            ffm_watch_gone(operation->destination, operation->destination + (bytes != 0 ? bytes : 1));
        if (bytes != 0 && function->memory != FFM_MEMORY_REGISTERED && ffm_watch_active()) {
            ffm_ranges_lock();
            ffm_access_over_in(operation->destination, operation->destination + bytes);
            ffm_extents_end(operation->destination, operation->destination + bytes);
            ffm_ranges_cut(operation->destination, operation->destination + bytes);
            ffm_ranges_unlock();
        }
        return;
    }
    ffm_protected_data_before(function, arguments);
    if (!ffm_watch_active())
        return;
    if (registers(function)) {
        ffm_aside_driver(operation->destination, operation->destination + operation->bytes, true);
        return;
    }
    ffm_copy copy;
    if (!ffm_copy_of(function, arguments, operation, 0, &copy))
        return;
    const uint64_t since = ffm_watch_budget_is_open() ? ffm_now() : 0;
    ffm_signals_hold(); /* once for all steps, each of which locks the ranges */
    for (uint32_t place = 1;; place++) {
        ffm_ranges_lock();
        const bool may = with_others && may_deliver(function, arguments, &copy);
        const bool kept = keeps(function, &copy, operation, place, may);
        before_copy(&copy, operation, kept);
        const bool delivered = may && ffm_delivery_begin(&copy.destination);
        ffm_ranges_unlock();
        if (copy.source.host && copy.source.address != 0)
            ffm_extents_used_by_gpu(copy.source.address, ffm_box_end(&copy.source));
        open_beside(&copy, kept || delivered);
        if (!ffm_copy_of(function, arguments, operation, place, &copy))
            break;
    }
    ffm_signals_release();
    ffm_watch_budget_spend(since, false);
}

/* It is left over if the call failed, or if its destination cannot be watched any more. */
static void end_kept(const ffm_function *function, const ffm_operation *operation, const ffm_thread *thread)
{
    if (!(function->asynchronous || ffm_delivery_address() != 0) ||
        !(operation->flags & FFM_OPERATION_HOST_DESTINATION) || !ffm_watch_active())
        return;
    ffm_ranges_lock();
    ffm_extents_kept_over(operation->destination, thread->number);
    ffm_ranges_unlock();
}

void ffm_watch_private_wait(ffm_thread *thread)
{
    const ffm_cover nothing_certain = {.before = 0};
    ffm_arming_wait_ended(&nothing_certain, thread, 0);
    ffm_counters_round();
}

void ffm_watch_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                     uint64_t number, ffm_thread *thread)
{
    /* Once for all steps, if several will lock the ranges. */
    const bool locks = ffm_watch_active() || operation->flags & FFM_OPERATION_HOST_DESTINATION;
    if (locks)
        ffm_signals_hold();
    ffm_keys_expel();
    ffm_blocks_note(function, operation);
    ffm_managed_variables_note(function, arguments, operation);
    /* While a graph is captured, a stream that waits for an event can become a part of it. */
    if (function->effect != FFM_EFFECT_WAIT_EVENT || !ffm_capturing())
        ffm_waits_note(function, operation, thread);
    if (function->kind == FFM_KIND_ORDER)
        ffm_waiters_waited();
    ffm_protected_data_add(function, arguments, operation, number, thread);
    end_kept(function, operation, thread);
    ffm_cover cover;
    if (ffm_waited(function, operation, thread, &cover))
        ffm_arming_wait_ended(&cover, thread, operation->stack);
    /* What lies beside new results is closed with them: closing a page takes longer than all else, since the kernel
     * interrupts each processor on which another thread of the process runs. */
    ffm_aside_driver_over();
    ffm_delivery_over();
    ffm_counters_round();
    if (locks)
        ffm_signals_release();
}

bool ffm_watch_open(const ffm_plan_header *plan, bool whole)
{
    ffm_watch_want_stacks(whole || plan == NULL);
    ffm_accesses_of_others(whole || plan == NULL);
    ffm_library_functions_open();
    if (!ffm_protected_data_open(plan) || (!ffm_trace_on() && !ffm_faults_open()))
        return false;
    if (whole || plan == NULL)
        ffm_extents_open(ffm_trace_on() ? 0 : ffm_faults_cost());
    else if (!ffm_trace_on())
        ffm_watch_budget_open(ffm_faults_cost());
    return true;
}

void ffm_watch_free_locks(void)
{
    ffm_counters_after_fork();
    ffm_thread_memory_after_fork();
    ffm_mappings_after_fork();
    ffm_closed_memory_after_fork();
    ffm_protected_data_after_fork();
    ffm_ranges_lock_after_fork();
    ffm_accesses_reopen();
    ffm_extents_reopen();
    ffm_ranges_unlock();
}
