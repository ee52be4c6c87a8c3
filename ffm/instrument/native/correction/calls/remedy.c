#include "remedy.h"

#include <stddef.h>

#include "allowance.h"
#include "bindings.h"
#include "clock_payments.h"
#include "clocks.h"
#include "counters.h"
#include "delivery.h"
#include "dispatch.h"
#include "downloads.h"
#include "effects.h"
#include "extra_wrappers.h"
#include "extras.h"
#include "forks.h"
#include "guards.h"
#include "heap.h"
#include "host_memory.h"
#include "instruments.h"
#include "kernel_arguments.h"
#include "lifetime.h"
#include "maps.h"
#include "modules.h"
#include "plan.h"
#include "python_frames.h"
#include "stacks.h"
#include "state.h"
#include "trials.h"
#include "wrappers.h"

static void become_child(void)
{
    ffm_counters_after_fork();
    ffm_trials_open();
    ffm_heap_open();
    ffm_downloads_after_fork();
    ffm_kernels_after_fork();
    ffm_host_memory_after_fork();
    ffm_modules_after_fork();
    ffm_python_after_fork();
    ffm_stacks_after_fork();
    ffm_plan_after_fork();
    ffm_lifetime_after_fork();
}

static void deliver_all(void)
{
    ffm_downloads_deliver_all(&ffm_counters->deliveries_called, true);
}

int ffm_remedy_open(const char *folder, uint32_t mode, const char *plan)
{
    if (mode & FFM_FOLLOW_CLOCKS)
        ffm_clock_payments_open();
    if (!ffm_plan_open(plan))
        return -2;
    ffm_wrappers_lead_to(ffm_call);
    ffm_lifetime_open(deliver_all);
    ffm_effects_close_transfers_with(ffm_downloads_close_transfer);
    ffm_allowance_open(ffm_plan_memory());
    if (!ffm_counters_open(folder, ffm_plan_sites()))
        return -1;
    ffm_trials_open();
    ffm_heap_open();
    ffm_stacks_open();
    ffm_dispatch_open();
    ffm_forks_handle(&(ffm_fork_handlers){ffm_downloads_before_fork, ffm_downloads_forked, become_child, NULL});
    return 0;
}

void *ffm_remedy_wrapper(uint32_t function)
{
    if (function < FFM_FUNCTION_COUNT)
        return ffm_wrapper(function);
    function -= FFM_FUNCTION_COUNT;
    return function < FFM_EXTRA_COUNT ? ffm_extra_wrapper(function) : ffm_guard_wrapper(function - FFM_EXTRA_COUNT);
}

void ffm_remedy_bind(uint32_t function, void *address, void *original)
{
    if (function >= FFM_FUNCTION_COUNT + FFM_EXTRA_COUNT) {
        ffm_guard_bind(function - FFM_FUNCTION_COUNT - FFM_EXTRA_COUNT, address, original);
        return;
    }
    if (address == original)
        ffm_stop(FFM_STOP_FUNCTIONS);
    if (function < FFM_FUNCTION_COUNT)
        ffm_call_bind(function, address, original);
    else
        ffm_extra_bind(function - FFM_FUNCTION_COUNT, address, original);
}

bool ffm_remedy_is_bound(const void *address)
{
    return ffm_call_at(address) != FFM_FUNCTION_COUNT || ffm_extra_is_bound(address) || ffm_guard_is_bound(address);
}

void ffm_remedy_modules_changed(void)
{
    ffm_modules_forget();
}

void ffm_remedy_foreign(void *start, uint64_t bytes, bool driver)
{
    if (driver)
        ffm_clock_payments_driver((uint64_t)start, (uint64_t)start + bytes);
    else
        ffm_instruments_note((uint64_t)start, bytes);
}

void ffm_remedy_instrument(const void *start, uint64_t bytes)
{
    ffm_instruments_note((uint64_t)start, bytes);
}

static ffm_followed *followed_at(uint32_t mode, uint32_t place)
{
    for (ffm_followed *row = ffm_clocks; mode & FFM_FOLLOW_CLOCKS && row->name != NULL; row++)
        if (place-- == 0)
            return row;
    return NULL;
}

const char *ffm_remedy_followed_name(uint32_t mode, uint32_t place)
{
    const ffm_followed *row = followed_at(mode, place);
    return row == NULL ? NULL : row->name;
}

void *ffm_remedy_followed_wrapper(uint32_t mode, uint32_t place)
{
    const ffm_followed *row = followed_at(mode, place);
    return row == NULL || row->original != NULL ? NULL : row->wrapper; /* a forked child has its parent's */
}

void ffm_remedy_followed_bind(uint32_t mode, uint32_t place, void *original)
{
    ffm_followed *row = followed_at(mode, place);
    if (row != NULL)
        ffm_followed_bind(row, original);
}

void ffm_remedy_python(const void *thread_state, const void *runtime, uint32_t version, bool dedicated)
{
    const ffm_python found = {
        .thread_state = thread_state, .runtime = runtime, .version = version, .dedicated = dedicated};
    ffm_python_found(&found);
}

void ffm_remedy_call_enter(void *invocation)
{
    (void)invocation;
}

void ffm_remedy_call_leave(void *invocation)
{
    (void)invocation;
}
