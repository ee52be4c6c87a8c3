/* The driver's internal wait function, and functions that could only be attached to. */
#include <stdbool.h>

#include "callbacks.h"
#include "calls.h"
#include "clock.h"
#include "detached.h"
#include "invocation.h"
#include "modes.h"
#include "portion.h"
#include "stacks.h"
#include "thread.h"
#include "watch.h"

/* A wait under no public call: a library used the driver's private interface, or stage 1 hooks nothing else. */
static void record_private(ffm_thread *thread, uint64_t end, uint64_t wait)
{
    const ffm_operation operation = {
        .start = end - wait,
        .duration = wait,
        .wait = wait,
        .waits = 1,
        .stack = thread->wait_stack,
        .probe = thread->wait_probe,
        .function = FFM_FUNCTION_PRIVATE,
        .flags = (uint16_t)(FFM_OPERATION_PRIVATE | (thread->wait_truncated ? FFM_OPERATION_TRUNCATED : 0)),
        .thread_id = thread->kernel_id};
    ffm_record_operation(&operation, thread);
}

void ffm_collector_wait_enter(void *invocation)
{
    if (ffm_detached())
        return;
    uint64_t entered = ffm_now();
    ffm_thread *thread = ffm_thread_self();
    if (thread == NULL || thread->wait_depth++ != 0)
        return;
    thread->wait_passes =
        thread->depth == 0 && thread->bypass == 0 && ffm_portion_limited() && !ffm_portion_takes_private(thread);
    if (thread->depth == 0 && thread->bypass == 0 && !thread->wait_passes) {
        ffm_registers registers = ffm_registers_of(((const gum_invocation *)invocation)->cpu_context);
        thread->wait_stack = ffm_stack_at_entry(&registers, &thread->wait_truncated);
        thread->wait_start = ffm_now();
        thread->wait_probe = (uint32_t)(thread->wait_start - entered) + thread->probe_after;
        thread->probe_after = 0;
    } else {
        thread->wait_start = entered;
    }
}

void ffm_collector_wait_leave(void *invocation)
{
    (void)invocation;
    uint64_t now = ffm_now();
    ffm_thread *thread = ffm_thread_self();
    if (thread == NULL || thread->wait_depth == 0 || --thread->wait_depth != 0)
        return;
    uint64_t wait = now - thread->wait_start;
    if (thread->depth != 0) {
        thread->wait += wait;
        thread->waits++;
    } else if (thread->bypass == 0 && !thread->wait_passes) {
        record_private(thread, now, wait);
        if (ffm_call_mode() & FFM_MODE_WATCH)
            ffm_watch_private_wait(thread);
        if (ffm_portion_limited())
            ffm_portion_recorded();
    }
}
