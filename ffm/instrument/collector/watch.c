#include "watch.h"

#include <stddef.h>

#include "accesses.h"
#include "arming.h"
#include "aside.h"
#include "blocks.h"
#include "clock.h"
#include "contents.h"
#include "counters.h"
#include "extents.h"
#include "faults.h"
#include "managed_variables.h"
#include "mappings.h"
#include "protected_data.h"
#include "thread_memory.h"
#include "threads.h"
#include "trace.h"
#include "waits.h"

enum { PAGE = 4096 };

static bool planned; /* only some stacks are watched (stage 4) */

static uint32_t forks; /* in progress, nested or on several threads; under the lock of the ranges */
static uint64_t forking_since;
static bool forking_among_others; /* other threads, which may touch what is open; they may end meanwhile */

bool ffm_watch_wants_stacks(void)
{
    return !planned;
}

static void before_copy(const ffm_copy *copy, const ffm_operation *operation)
{
    if (copy->destination.host && copy->destination.address != 0)
        ffm_ranges_cut_box(&copy->destination);
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

/* If the driver copies on the CPU, it would have to be stepped over pages that are shared with watched ranges: ten
 * microseconds for each vector of a copy. A program with one thread touches nothing meanwhile. */
static void open_beside(const ffm_copy *copy)
{
    if (ffm_threads_several())
        return;
    if (copy->source.host && copy->source.address != 0)
        ffm_aside_driver(copy->source.address, ffm_box_end(&copy->source));
    if (copy->destination.host && copy->destination.address != 0)
        ffm_aside_driver(copy->destination.address, ffm_box_end(&copy->destination));
}

void ffm_watch_before(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                      ffm_thread *thread)
{
    if (!thread->memory_known) {
        ffm_thread_memory_here();
        thread->memory_known = true;
    }
    /* The driver frees it, and waits itself. Unregistered memory remains the program's. */
    if (function->kind == FFM_KIND_FREE && operation->destination != 0) {
        uint64_t bytes = ffm_blocks_remove(operation->destination);
        if (function->memory != FFM_MEMORY_REGISTERED)
            ffm_contents_gone(operation->destination, operation->destination + (bytes != 0 ? bytes : 1));
        if (bytes != 0 && function->memory != FFM_MEMORY_REGISTERED && ffm_watch_active()) {
            ffm_ranges_lock();
            ffm_ranges_cut(operation->destination, operation->destination + bytes);
            ffm_ranges_unlock();
        }
        return;
    }
    ffm_protected_data_before(function, arguments);
    if (!ffm_watch_active())
        return;
    if (registers(function)) {
        ffm_aside_driver(operation->destination, operation->destination + operation->bytes);
        return;
    }
    ffm_copy copy;
    for (uint32_t place = 0; ffm_copy_of(function, arguments, operation, place, &copy); place++) {
        ffm_ranges_lock();
        before_copy(&copy, operation);
        ffm_ranges_unlock();
        if (copy.source.host && copy.source.address != 0)
            ffm_extents_used_by_gpu(copy.source.address, ffm_box_end(&copy.source));
        open_beside(&copy);
    }
}

void ffm_watch_private_wait(ffm_thread *thread)
{
    const ffm_cover nothing_certain = {.before = 0};
    ffm_arming_wait_ended(&nothing_certain, thread);
    ffm_counters_round();
}

void ffm_watch_after(const ffm_function *function, const uint64_t *arguments, const ffm_operation *operation,
                     uint64_t number, ffm_thread *thread)
{
    ffm_aside_driver_over();
    ffm_blocks_note(function, operation);
    ffm_managed_variables_note(function, arguments, operation);
    if (function->kind == FFM_KIND_ORDER) {
        ffm_waits_note(function, operation, thread);
        ffm_arming_event_recorded();
    }
    ffm_protected_data_add(function, arguments, operation, number, thread);
    ffm_cover cover;
    if (ffm_waited(function, operation, thread, &cover))
        ffm_arming_wait_ended(&cover, thread);
    ffm_counters_round();
}

bool ffm_watch_in_flight(uint64_t start, uint64_t end)
{
    bool found = false;
    if (!ffm_watch_active())
        return false;
    ffm_ranges_lock();
    for (uint32_t i = 0; i < ffm_ranges_count() && !found; i++) {
        const ffm_range *range = ffm_ranges_at(i);
        found = !range->writes_only && !range->covered && ffm_box_touches(&range->box, start, end);
    }
    ffm_ranges_unlock();
    return found;
}

static bool any_in(uint64_t start, uint64_t end)
{
    for (uint32_t i = 0; i < ffm_ranges_count(); i++)
        if (ffm_ranges_at(i)->start < end && start < ffm_ranges_at(i)->end)
            return true;
    return false;
}

static void release(uint64_t start, uint64_t end, bool gone)
{
    if (!any_in(start, end))
        return;
    ffm_ranges_lock();
    if (!gone)
        ffm_extents_lose_in(start, end);
    ffm_access_unseen(start, end, true, FFM_ACCESS_RELEASED, 0);
    ffm_ranges_cut(start, end); /* what is in flight has lost its memory */
    ffm_ranges_unlock();
}

void ffm_watch_released(uint64_t start, uint64_t bytes, bool gone)
{
    if (bytes != 0 && ffm_watch_active())
        release(start, (start + bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1), gone);
}

void ffm_watch_freed(uint64_t start, uint64_t bytes)
{
    release(start, start + bytes, true);
}

bool ffm_watch_open(const ffm_plan_header *plan)
{
    planned = plan != NULL;
    ffm_protected_data_open(plan);
    if (!ffm_trace_on() && !ffm_faults_open())
        return false;
    if (!planned)
        ffm_extents_open(ffm_trace_on() ? 0 : ffm_faults_cost());
    return true;
}

void ffm_watch_before_fork(void)
{
    ffm_ranges_lock();
    ffm_extents_before_fork();
    if (forks++ == 0) {
        forking_since = ffm_now();
        forking_among_others = ffm_threads_several();
    }
    ffm_ranges_hold_open(!ffm_trace_on()); /* otherwise no page is protected */
    ffm_ranges_unlock();
}

static void arm_again(bool missed)
{
    ffm_ranges_hold_open(false);
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        const bool wanted = range->forking && range->state == FFM_RANGE_OPEN;
        range->forking = false;
        if (wanted && (missed || !ffm_ranges_arm(range)))
            ffm_access_lost(i - 1, forking_since);
    }
}

void ffm_watch_forked(void)
{
    ffm_ranges_lock();
    if (--forks == 0)
        arm_again(forking_among_others);
    ffm_ranges_unlock();
}

void ffm_watch_give_up(void)
{
    const uint64_t now = ffm_now();
    ffm_ranges_lock();
    for (uint32_t i = ffm_ranges_count(); i > 0; i--)
        if (ffm_ranges_at(i - 1)->state == FFM_RANGE_ARMED || ffm_ranges_at(i - 1)->state == FFM_RANGE_OPEN)
            ffm_access_lost(i - 1, now);
    ffm_ranges_unlock();
}

void ffm_watch_lose(void)
{
    ffm_threads_lose();
    ffm_trace_lose();
    ffm_watch_give_up();
}

void ffm_watch_free_locks(void)
{
    ffm_counters_after_fork();
    ffm_thread_memory_after_fork();
    ffm_mappings_after_fork();
    ffm_ranges_lock_after_fork();
    ffm_ranges_unlock();
}

void ffm_watch_after_fork(void)
{
    ffm_ranges_lock();
    ffm_accesses_after_fork();
    ffm_extents_after_fork();
    forks = 0;
    arm_again(false);
    for (uint32_t i = ffm_ranges_count(); i > 0; i--) {
        ffm_range *range = ffm_ranges_at(i - 1);
        if (range->writes_only || range->state != FFM_RANGE_ARMED)
            ffm_ranges_remove(i - 1);
    }
    ffm_ranges_unlock();
}
