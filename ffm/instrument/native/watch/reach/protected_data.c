#include "protected_data.h"

#include <stddef.h>

#include "accesses.h"
#include "blocks.h"
#include "boxes.h"
#include "clock.h"
#include "contexts.h"
#include "extents.h"
#include "graphs.h"
#include "habits.h"
#include "kernel_name.h"
#include "launches.h"
#include "loaded_code.h"
#include "mappings.h"
#include "own_pages.h"
#include "pageable.h"
#include "planned.h"
#include "ranges.h"
#include "records.h"
#include "sink.h"
#include "stored_addresses.h"
#include "thread_memory.h"
#include "threads.h"
#include "traced.h"
#include "used_together.h"
#include "waiters.h"
#include "waits.h"
#include "watch_budget.h"

enum { SEPARATE_ROWS = 64, PAGE = 4096 };

static bool has_plan;
static ffm_planned planned;

static __thread uint64_t alone_before __attribute__((tls_model("initial-exec"))); /* the call that is being made */

static bool pageable_given; /* passed to a kernel; set under the lock of the ranges */

bool ffm_protected_data_open(const ffm_plan_header *plan)
{
    has_plan = plan != NULL;
    return !has_plan || ffm_planned_open(&planned, plan + 1, FFM_KEY_BYTES, plan->count);
}

void ffm_protected_data_after_fork(void)
{
    ffm_planned_after_fork(&planned);
    ffm_stored_addresses_after_fork();
    ffm_loaded_code_after_fork();
}

bool ffm_protected_data_planned(uint32_t stack)
{
    return !has_plan || ffm_planned_place(&planned, stack) != FFM_NOT_PLANNED;
}

/* The earlier of two ranges adds nothing to the later one if both are the same memory on the same stream and no wait
 * can have come in between. Nor does it if the later work is done after the earlier and both only read: the later range
 * then takes the place of an armed one, whose pages need not be opened and protected again if nothing is written there
 * until the next wait. Returns whether it did. */
static bool drop_equal(const ffm_range *range, bool watchable)
{
    bool placed = false;
    const ffm_nearby nearby = ffm_ranges_nearby(range->box.address, ffm_box_end(&range->box));
    for (uint32_t i = 0; i < nearby.count; i++) {
        const uint32_t place = ffm_nearby_place(&nearby, i);
        const ffm_range *other = ffm_ranges_at(place);
        if (other->stream != range->stream || other->launch != range->launch ||
            other->writes_only != range->writes_only || !ffm_box_same(&other->box, &range->box) ||
            !(range->writes_only || (other->state == FFM_RANGE_PENDING && other->waits == range->waits)))
            continue;
        if (watchable && !placed && other->state == FFM_RANGE_ARMED && !ffm_trace_on()) {
            ffm_ranges_replace(place, range);
            placed = true;
        } else {
            ffm_access_over(place);
        }
    }
    return placed;
}

/* Memory that must not be protected, because a thread runs or may run on it, or because it is visible elsewhere too.
 * Not under the lock. */
static bool unwatchable(const ffm_box *box)
{
    uint64_t end = ffm_box_end(box);
    return (ffm_trace_on() ? !ffm_trace_complete() : !ffm_threads_known()) ||
           ffm_thread_memory_holds(box->address, end) ||
           (!ffm_blocks_allocated(box->address) && ffm_mappings_shared(box->address, end));
}

/* As ffm_threads_alone. The trace does not see who sleeps. */
static uint64_t alone(void)
{
    return ffm_trace_on() ? !ffm_threads_several() : ffm_threads_alone();
}

/* Which results, or sources of uploads, it is one of. */
static uint32_t source_of(const ffm_range *range, uint32_t site)
{
    if (range->launch)
        return ffm_habit_of_block(site, range->box.address);
    return range->writes_only ? ffm_habit_of_uploads(site) : site;
}

/* No verdict rests on stage 4, which therefore has a budget. What a call that waits itself reads has a rule of its
 * own. */
static bool has_habit(const ffm_range *range)
{
    const bool uploaded = range->writes_only && !range->launch && range->in_flight;
    const bool result = !range->writes_only && (range->launch || range->download);
    return !ffm_trace_on() && !ffm_watch_budget_is_open() && (result || uploaded);
}

static void add(ffm_range *range, bool watchable, uint32_t stack)
{
    range->waits = ffm_waiters_waits();
    ffm_own_pages_used(range);
    watchable = watchable && !pageable_given;
    const uint32_t source = source_of(range, stack);
    if (watchable && !ffm_watch_budget_allows(source)) {
        ffm_access_record_presumed(range, FFM_ACCESS_LAST);
        return;
    }
    range->habit = has_habit(range) ? source : 0;
    range->spared = range->habit != 0 && watchable && ffm_habit_spares(source);
    range->joins =
        range->habit != 0 && watchable && !range->spared && ffm_together_joins(source) && !ffm_access_others_may_wait();
    const bool followed = range->download && !range->spared && !range->joins;
    range->granule = followed ? ffm_extents_granule(range) : 0;
    if ((range->launch || range->writes_only) && drop_equal(range, watchable))
        return;
    ffm_range *added = range->download && watchable ? ffm_extents_take_kept(range) : NULL;
    if (added == NULL && watchable && ffm_ranges_add(range))
        added = ffm_ranges_at(ffm_ranges_count() - 1);
    if (added == NULL)
        ffm_access_record(range, FFM_ACCESS_UNWATCHED, FFM_ACCESS_LAST, range->box.address, ffm_now(), stack);
    else if (followed && alone_before != 0 && alone() == alone_before)
        ffm_extents_guard(added);
}

/* Rows with whole pages between them are watched one by one, so that the gaps stay open. */
static void add_box(ffm_range *range, uint32_t stack)
{
    ffm_box box = range->box;
    bool watchable = !unwatchable(&box);
    ffm_ranges_lock();
    if (box.depth > 1 || box.height > SEPARATE_ROWS || box.pitch < box.width + 2 * PAGE) {
        add(range, watchable, stack);
    } else {
        for (uint64_t row = 0; row < box.height; row++) {
            range->box = (ffm_box){box.address + row * box.pitch, box.width, box.width, 1, box.width, 1, true};
            add(range, watchable, stack);
        }
    }
    ffm_ranges_unlock();
}

static void add_copy(const ffm_function *function, const ffm_copy *copy, ffm_range *range, uint32_t stack)
{
    if (copy->destination.host && copy->destination.address != 0) {
        range->box = copy->destination;
        range->writes_only = false;
        range->download = function->kind == FFM_KIND_TRANSFER && !copy->source.host;
        add_box(range, stack);
    }
    /* A pageable source is staged when the call returns: the CPU may write it at once. */
    if (copy->source.host && copy->source.address != 0 && ffm_blocks_hold(copy->source.address)) {
        range->box = copy->source;
        range->writes_only = true;
        range->download = false;
        if (function->direction != FFM_DIRECTION_GENERIC || !copy->destination.host || function->asynchronous)
            add_box(range, stack);
    }
}

/* What the operation writes or reads is not fully known: it counts as used. */
static void add_unknown(const ffm_range *range, uint32_t stack)
{
    ffm_ranges_lock();
    ffm_access_record(range, FFM_ACCESS_UNWATCHED, FFM_ACCESS_LAST, 0, ffm_now(), stack);
    ffm_ranges_unlock();
}

/* In addition to what its kernels can access. */
static void add_graph(uint64_t executable, ffm_range *range, uint32_t stack)
{
    ffm_graph_fact fact;
    if (ffm_graph_has(executable, FFM_GRAPH_UNKNOWN))
        add_unknown(range, stack);
    for (uint32_t place = 0; ffm_graph_next(executable, &place, &fact);) {
        if (fact.kind != FFM_GRAPH_WRITES && fact.kind != FFM_GRAPH_READS)
            continue;
        range->box = fact.box;
        range->writes_only = fact.kind == FFM_GRAPH_READS;
        add_box(range, stack);
    }
    range->writes_only = false;
}

/* Whether there is a block that the launch is not known to access. */
static bool leaves_out(const ffm_kernel_reach *known)
{
    ffm_kernel_reach reach = *known;
    ffm_block block;
    uint32_t reached = 0;
    while (ffm_kernel_next(&reach, &block))
        reached++;
    return reached < ffm_blocks_count();
}

/* Add the blocks whose addresses the CPU stored in others that the launch can access. */
static void follow_stored_addresses(ffm_kernel_reach *reach)
{
    ffm_block block;
    for (bool more = !reach->all && leaves_out(reach); more; reach->next = 0) {
        more = false;
        while (!reach->all && ffm_kernel_next(reach, &block)) {
            const ffm_stored stored = ffm_stored_addresses_in(reach->next - 1, &block);
            more = more || stored == FFM_STORED_NEW;
            reach->all = stored == FFM_STORED_UNKNOWN;
        }
        more = more && !reach->all && leaves_out(reach);
    }
}

static void add_launch(const ffm_function *function, const uint64_t *arguments, ffm_range *range, uint32_t stack)
{
    range->launch = true;
    if (ffm_graphs_launched(function))
        add_graph(arguments[function->handle], range, stack);
    ffm_block block;
    ffm_kernel_reach reach = {0};
    ffm_launch_scan(&reach, function, arguments);
    follow_stored_addresses(&reach);
    while (ffm_kernel_next(&reach, &block)) {
        ffm_extents_used_by_gpu(block.start, block.start + block.bytes);
        range->box = (ffm_box){block.start, block.bytes, block.bytes, 1, block.bytes, 1, true};
        add_box(range, stack);
    }
}

static bool uses_pageable(const ffm_function *function, const uint64_t *arguments, ffm_kernel_reach *reach)
{
    if (function->kind != FFM_KIND_LAUNCH || !ffm_pageable_used())
        return false;
    ffm_launch_scan(reach, function, arguments);
    return reach->pageable;
}

/* Why a launch counts as using ordinary memory. */
static uint32_t cause_of(const ffm_kernel_reach *reach)
{
    if (reach->kernel == 0)
        return FFM_ORDINARY_GRAPH;
    if (reach->all_parameters)
        return FFM_ORDINARY_ANYTHING;
    return ffm_loaded_code_knows(reach->kernel) ? FFM_ORDINARY_USES : FFM_ORDINARY_NO_CODE;
}

void ffm_protected_data_before(const ffm_function *function, const uint64_t *arguments)
{
    ffm_loaded_code_before(function, arguments);
    if (function->kind == FFM_KIND_TRANSFER)
        alone_before = alone();
    ffm_kernel_reach reach = {0};
    if (__atomic_load_n(&pageable_given, __ATOMIC_RELAXED) || !uses_pageable(function, arguments, &reach))
        return;
    const char *kernel = reach.kernel == 0 ? NULL : ffm_name_of_kernel(reach.kernel);
    const uint32_t cause = cause_of(&reach);
    const uint64_t now = ffm_now();
    ffm_ranges_lock(); /* no page may be protected while the kernel runs */
    __atomic_store_n(&pageable_given, true, __ATOMIC_RELAXED);
    ffm_sink_note_ordinary_memory(now, kernel, reach.offset, cause);
    for (uint32_t i = ffm_ranges_count(); i > 0; i--)
        ffm_access_lost(i - 1, now);
    ffm_ranges_unlock();
}

static bool protects(const ffm_function *function, const ffm_operation *operation)
{
    switch (function->kind) {
    case FFM_KIND_TRANSFER:
    case FFM_KIND_SET:
        return operation->result == 0 && ffm_protected_data_planned(operation->stack);
    case FFM_KIND_LAUNCH:
        return operation->result == 0 &&
               (ffm_blocks_count() != 0 || ffm_graphs_launched(function) ||
                __atomic_load_n(&pageable_given, __ATOMIC_RELAXED)) &&
               ffm_protected_data_planned(operation->stack);
    default:
        return false;
    }
}

void ffm_protected_data_add(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                            uint64_t number, const ffm_thread *thread)
{
    ffm_loaded_code_after(function, arguments, (uint32_t)operation->result);
    if (!protects(function, operation))
        return;
    ffm_range range = {.operation = number,
                       .thread = thread->number,
                       .context = ffm_context_recorded(operation),
                       .stream = ffm_stream_key(function, operation, thread),
                       .issued = operation->start,
                       .in_flight = function->asynchronous && operation->waits == 0};
    if (__atomic_load_n(&pageable_given, __ATOMIC_RELAXED)) {
        add_unknown(&range, operation->stack);
        return;
    }
    if (!ffm_blocks_complete())
        add_unknown(&range, operation->stack);
    if (function->kind == FFM_KIND_LAUNCH) {
        add_launch(function, arguments, &range, operation->stack);
        return;
    }
    if (operation->flags & FFM_OPERATION_ON_CPU)
        return;
    ffm_copy copy;
    for (uint32_t place = 0; ffm_copy_of(function, arguments, operation, place, &copy); place++) {
        if (!copy.source.host && !copy.destination.host)
            continue;
        add_copy(function, &copy, &range, operation->stack);
    }
}
