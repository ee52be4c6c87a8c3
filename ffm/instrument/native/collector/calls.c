#include "calls.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "arguments.h"
#include "bindings.h"
#include "boxes.h"
#include "callbacks.h"
#include "captures.h"
#include "clock.h"
#include "contents.h"
#include "contexts.h"
#include "delivery.h"
#include "detached.h"
#include "dispatch.h"
#include "gpu_times.h"
#include "graphs.h"
#include "host_blocks.h"
#include "invocation.h"
#include "kernel_names.h"
#include "launches.h"
#include "modes.h"
#include "portion.h"
#include "printing.h"
#include "protected_data.h"
#include "repeated_stacks.h"
#include "stacks.h"
#include "thread.h"
#include "trace.h"
#include "watch.h"

typedef uint64_t word;

static uint32_t mode;

/* What a traced call needs that has its own place here; other modes do more. */
static const uint32_t TRACED = FFM_MODE_HOST | FFM_MODE_NAMES | FFM_MODE_LIVES;

void ffm_call_set_mode(uint32_t wanted)
{
    mode = wanted;
}

uint32_t ffm_call_mode(void)
{
    return mode;
}

/* What a recorded call needs between its start and its end. `with_others`: the driver is called by forward below. */
static void begin(uint32_t index, const word *arguments, ffm_thread *thread, ffm_operation *operation, bool with_others)
{
    const ffm_function *function = &ffm_catalogue[index];
    ffm_delivery_over(); /* of a call that was cancelled */
    operation->function = (uint16_t)index;
    operation->thread_id = thread->kernel_id;
    ffm_arguments_before(function, arguments, operation);
    ffm_captures_foresee(function);
    thread->wait = 0;
    thread->waits = 0;
    if (ffm_captured(function, operation, thread)) {
        operation->flags |= FFM_OPERATION_CAPTURED;
        return;
    }
    if (mode & ~FFM_MODE_HOST) {
        thread->bypass++;
        operation->flags |= (uint16_t)(ffm_context_of(function, operation) << FFM_OPERATION_CONTEXT_SHIFT);
        thread->bypass--;
    }
    if (mode & FFM_MODE_HOST) {
        if (operation->flags & FFM_OPERATION_HOST_SOURCE)
            ffm_host_blocks_used(operation->source, operation->stack);
        if (operation->flags & FFM_OPERATION_HOST_DESTINATION)
            ffm_host_blocks_used(operation->destination, operation->stack);
    }
    if (mode & ~TRACED) {
        thread->bypass++;
        ffm_boxes_mark(function, arguments, operation);
        if (ffm_graphs_launched(function) && ffm_graph_has(operation->handle, FFM_GRAPH_RECORDS))
            operation->flags |= FFM_OPERATION_RECORDS;
        if (ffm_graphs_launched(function) && ffm_graph_has(operation->handle, FFM_GRAPH_UNKNOWN))
            operation->flags |= FFM_OPERATION_HOLDS;
        if (mode & FFM_MODE_WATCH) {
            ffm_printing_look(thread);
            ffm_watch_before(function, arguments, operation, with_others);
            if (ffm_devices_several() && ffm_launch_stays_on_device(function, arguments))
                operation->flags |= FFM_OPERATION_DEVICE_ONLY;
        }
        if (mode & FFM_MODE_CONTENTS)
            ffm_contents_before(function, arguments, operation, thread);
        if (mode & FFM_MODE_GPU_TIMES)
            ffm_gpu_times_before(function, operation, thread);
        thread->bypass--;
    }
}

bool ffm_record_operation(const ffm_operation *operation, ffm_thread *thread)
{
    if (ffm_portion_limited())
        ffm_portion_recording(operation->function, thread);
    thread->bypass++; /* what a signal handler of the program calls meanwhile is not recorded */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const bool recorded = ffm_pack_operation(&thread->operations, thread->number, operation);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread->bypass--;
    if (!recorded)
        ffm_sink_left_out(operation->start);
    return recorded;
}

/* How long the CPU works in a download after its first wait has begun, as it copies from the driver's buffers. Between
 * later waits, which are for the parts of the download that follow, it works on what the first one was for. */
static uint32_t after_wait(const ffm_operation *operation, const ffm_thread *thread)
{
    if ((mode & ~TRACED) || operation->waits == 0 || !(operation->flags & FFM_OPERATION_HOST_DESTINATION))
        return 0;
    const uint64_t after = operation->start + operation->duration - thread->first_wait - operation->wait;
    return (uint32_t)(after < FFM_LONGEST_AFTER_WAIT ? after : FFM_LONGEST_AFTER_WAIT);
}

static void end(uint32_t index, const word *arguments, ffm_thread *thread, ffm_operation *operation)
{
    const ffm_function *function = &ffm_catalogue[index];
    operation->wait = thread->wait;
    operation->waits = (uint16_t)(thread->waits < UINT16_MAX ? thread->waits : UINT16_MAX);
    operation->after_wait =
        function->kind == FFM_KIND_LAUNCH ? ffm_launch_size(function, arguments) : after_wait(operation, thread);
    ffm_arguments_after(function, arguments, operation);
    const uint64_t number = thread->operations.stream.written;
    if (!ffm_record_operation(operation, thread))
        return;
    ffm_captures_note(function, operation);
    if (operation->flags & FFM_OPERATION_CAPTURED)
        return;
    if (mode & FFM_MODE_NAMES && ffm_kernel_names_concern(function)) {
        thread->bypass++;
        ffm_kernel_names_note(function, operation);
        thread->bypass--;
    }
    if (mode & ~TRACED) {
        thread->bypass++;
        if (mode & FFM_MODE_WATCH)
            ffm_graphs_note(function, arguments, operation);
        if (mode & FFM_MODE_GPU_TIMES)
            ffm_gpu_times_after(function, operation, number, thread);
        if (mode & FFM_MODE_CONTENTS)
            ffm_contents_after(function, arguments, operation, number, thread);
        if (mode & FFM_MODE_WATCH)
            ffm_watch_after(function, arguments, operation, number, thread);
        if (mode & FFM_MODE_WATCH)
            ffm_printing_note(thread, number, operation->start + operation->duration);
        thread->bypass--;
    }
}

/* If the end of a call is merely recorded, it is assumed to take as long as when that was last measured, because
 * reading a clock costs as much as all the rest. It is measured now and then, and whenever more is done. A measurement
 * in which the thread lost its processor tells nothing. */
static void note_probe_after(ffm_thread *thread, uint64_t returned, const ffm_chunk *chunk)
{
    enum { MEASURED = 16, INTERRUPTED = 1000 };
    const bool usual = (mode & ~TRACED) == 0 && thread->operations.stream.chunk == chunk;
    if (usual && thread->usual_after != 0 && thread->operations.stream.written % MEASURED != 0) {
        thread->probe_after = thread->usual_after;
        return;
    }
    thread->probe_after = (uint32_t)(ffm_now() - returned);
    if (usual && thread->probe_after < INTERRUPTED)
        thread->usual_after = thread->probe_after;
}

/* Whether a call is not recorded: outside of the portion of the run that is measured, or if it makes a context, which
 * waits only for its own set-up. */
static bool passes(uint32_t index, ffm_thread *thread, uint64_t entered)
{
    return ffm_context_made(&ffm_catalogue[index]) ||
           (ffm_portion_limited() && !ffm_portion_takes(index, thread, entered));
}

static word pass(uint32_t index, const word *arguments, ffm_thread *thread)
{
    int error = errno;
    ffm_dispatch_pause();
    if (mode & FFM_MODE_WATCH) {
        thread->bypass++;
        ffm_protected_data_before(&ffm_catalogue[index], arguments);
        thread->bypass--;
    }
    thread->depth = 1;
    errno = error;
    word result = ffm_call_forward(index, arguments);
    error = errno;
    thread->depth = 0;
    thread->probe_after = 0;
    ffm_portion_passed();
    ffm_dispatch_resume(true);
    ffm_trace_follow();
    errno = error;
    return result;
}

/* Call the driver, which may have to write to another place than the program says (delivery.h). */
static word forward(uint32_t index, const word *arguments)
{
    const ffm_function *function = &ffm_catalogue[index];
    const word elsewhere = ffm_delivery_address();
    if (elsewhere == 0)
        return ffm_call_forward(index, arguments);
    word changed[FFM_MAX_ARGUMENTS] = {0};
    memcpy(changed, arguments, function->arity * sizeof *changed);
    changed[function->destination] = elsewhere;
    return ffm_call_forward(index, changed);
}

/* The program finds errno as the driver leaves it. */
uint64_t ffm_call(uint32_t index, const uint64_t *arguments, const uint64_t *frame)
{
    if (ffm_detached())
        return ffm_call_forward(index, arguments);
    int error = errno;
    uint64_t entered = ffm_now();
    ffm_thread *thread = ffm_thread_self();
    if (thread == NULL || thread->bypass != 0)
        return ffm_call_forward(index, arguments);
    if (thread->depth != 0) { /* a call inside another one counts as part of the outer one */
        thread->depth++;
        word inner = ffm_call_forward(index, arguments);
        thread->depth--;
        return inner;
    }
    if (passes(index, thread, entered))
        return pass(index, arguments, thread);
    ffm_operation operation = {0};
    bool truncated;
    operation.stack = ffm_repeated_stack_of_caller(&thread->callers, frame, ffm_catalogue[index].name, &truncated);
    if (truncated)
        operation.flags |= FFM_OPERATION_TRUNCATED;
    ffm_dispatch_pause(); /* the driver's own system calls are not the program's */
    begin(index, arguments, thread, &operation, true);
    thread->depth = 1;
    operation.start = ffm_now();
    operation.probe = (uint32_t)(operation.start - entered) + thread->probe_after;
    errno = error;
    word result = forward(index, arguments);
    uint64_t returned = ffm_now();
    error = errno;
    ffm_delivery_arrive(result == 0);
    operation.duration = returned - operation.start;
    thread->depth = 0;
    operation.result = (int16_t)result;
    const ffm_chunk *chunk = thread->operations.stream.chunk;
    end(index, arguments, thread, &operation);
    if (ffm_portion_limited())
        ffm_portion_recorded();
    note_probe_after(thread, returned, chunk);
    ffm_dispatch_resume(true);
    ffm_trace_follow();
    errno = error;
    return result;
}

/* Functions that cannot be replaced are attached to: the call is between two callbacks. */
void ffm_collector_call_enter(void *opaque)
{
    if (ffm_detached())
        return;
    uint64_t entered = ffm_now();
    const gum_invocation *invocation = opaque;
    ffm_thread *thread = ffm_thread_self();
    uint32_t index = ffm_call_at(invocation->function);
    if (thread == NULL || thread->bypass != 0 || index == FFM_FUNCTION_COUNT || thread->depth++ != 0)
        return;
    thread->passing = passes(index, thread, entered);
    ffm_dispatch_pause();
    if (thread->passing)
        return;
    const gum_cpu_context *cpu = invocation->cpu_context;
    const word registers[6] = {cpu->rdi, cpu->rsi, cpu->rdx, cpu->rcx, cpu->r8, cpu->r9};
    memcpy(thread->attached_arguments, registers, sizeof registers);
    if (ffm_catalogue[index].arity > 6) /* the rest are after the return address */
        memcpy(thread->attached_arguments + 6, (const word *)cpu->rsp + 1, (FFM_MAX_ARGUMENTS - 6) * sizeof(word));
    thread->attached = (ffm_operation){0};
    bool truncated;
    ffm_registers from = ffm_registers_of(invocation->cpu_context);
    thread->attached.stack = ffm_stack_at_entry(&from, ffm_catalogue[index].name, &truncated);
    thread->attached.flags = truncated ? FFM_OPERATION_TRUNCATED : 0;
    begin(index, thread->attached_arguments, thread, &thread->attached, false);
    thread->attached.start = ffm_now();
    thread->attached.probe = (uint32_t)(thread->attached.start - entered) + thread->probe_after;
}

void ffm_collector_call_leave(void *opaque)
{
    uint64_t now = ffm_now();
    const gum_invocation *invocation = opaque;
    ffm_thread *thread = ffm_thread_self();
    if (thread == NULL || thread->bypass != 0 || thread->depth == 0 || --thread->depth != 0)
        return;
    if (thread->passing) {
        ffm_portion_passed();
        ffm_dispatch_resume(true);
        return;
    }
    thread->attached.duration = now - thread->attached.start;
    thread->attached.result = (int16_t)invocation->cpu_context->rax;
    end(thread->attached.function, thread->attached_arguments, thread, &thread->attached);
    if (ffm_portion_limited())
        ffm_portion_recorded();
    thread->probe_after = (uint32_t)(ffm_now() - now);
    ffm_dispatch_resume(true);
}
