#include "collector.h"

#include <stddef.h>

#include "allocators.h"
#include "bindings.h"
#include "births.h"
#include "blocks.h"
#include "boxes.h"
#include "calls.h"
#include "captures.h"
#include "clock_reads.h"
#include "clocks.h"
#include "code_image.h"
#include "contents.h"
#include "contexts.h"
#include "counters.h"
#include "detached.h"
#include "device_writes.h"
#include "dispatch.h"
#include "entry_points.h"
#include "followed_functions.h"
#include "foreign.h"
#include "forks.h"
#include "gpu_times.h"
#include "graphs.h"
#include "handovers.h"
#include "host_blocks.h"
#include "instruments.h"
#include "kernel_name.h"
#include "kernel_names.h"
#include "kernels.h"
#include "loaded_code.h"
#include "lock_waits.h"
#include "mappings.h"
#include "modes.h"
#include "modules.h"
#include "pageable.h"
#include "plan_file.h"
#include "portion.h"
#include "printing.h"
#include "processor_times.h"
#include "python_frames.h"
#include "readback.h"
#include "samples.h"
#include "signal_handlers.h"
#include "signal_waits.h"
#include "sink.h"
#include "stacks.h"
#include "thread.h"
#include "thread_lives.h"
#include "threads.h"
#include "trace.h"
#include "traced.h"
#include "unread.h"
#include "waits.h"
#include "watch.h"
#include "watched.h"
#include "wrappers.h"

static void before_fork(void)
{
    if (ffm_call_mode() & FFM_MODE_WATCH) {
        ffm_watch_shared();
        ffm_watch_before_fork();
    }
}

static void forked(void)
{
    if (ffm_call_mode() & FFM_MODE_WATCH)
        ffm_watch_forked();
}

static void begin_thread(uint64_t name, uint32_t number)
{
    ffm_handovers_thread(name, number);
    ffm_thread_lives_number(name, number);
    ffm_processor_times_thread(number);
    ffm_samples_thread();
}

static void end_thread(void)
{
    ffm_processor_times_thread_ends();
    ffm_samples_thread_ends();
}

static void become_child(void)
{
    if (ffm_detached() || !ffm_sink_reopen())
        return;
    ffm_blocks_after_fork();
    ffm_contexts_after_fork();
    ffm_waits_after_fork();
    ffm_readback_after_fork();
    ffm_modules_after_fork();
    ffm_python_after_fork();
    ffm_stacks_after_fork();
    ffm_thread_after_fork();
    ffm_thread_lives_after_fork();
    ffm_lock_waits_after_fork();
    ffm_kernel_names_after_fork();
    ffm_processor_times_after_fork(ffm_thread_number());
    ffm_samples_after_fork();
    ffm_portion_after_fork();
    if (ffm_call_mode() & FFM_MODE_WATCH)
        ffm_watch_free_locks();
    ffm_contents_after_fork();
    ffm_graphs_after_fork();
    ffm_gpu_times_after_fork();
    ffm_host_blocks_after_fork();
}

static void go_on(void)
{
    if (ffm_call_mode() & FFM_MODE_WATCH)
        ffm_watch_after_fork();
    ffm_dispatch_after_fork();
    ffm_trace_after_fork();
}

static const ffm_plan_header *map_plan(const char *path)
{
    const ffm_plan_kind kind = {"FFMWATCH", FFM_VERSION, sizeof(ffm_plan_header), FFM_KEY_BYTES};
    return ffm_plan_file_map(path, &kind);
}

/* What calls before it wrote, and where, is unknown. */
static void begin_stretch(void)
{
    if (ffm_call_mode() & FFM_MODE_CONTENTS)
        ffm_device_writes_unknown();
    if (ffm_call_mode() & FFM_MODE_WATCH)
        ffm_blocks_hand_all();
}

static void end_stretch(void)
{
    if (ffm_call_mode() & FFM_MODE_CONTENTS)
        ffm_contents_stop();
    if (ffm_call_mode() & FFM_MODE_WATCH)
        ffm_watch_forget();
}

void ffm_collector_limit(uint32_t kind, uint64_t from, uint64_t until, uint64_t every, const char *name)
{
    const ffm_portion portion = {(ffm_portion_kind)kind, from, until, every, name};
    ffm_portion_limit(&portion, begin_stretch, end_stretch);
}

void ffm_collector_keep(uint64_t nanoseconds)
{
    ffm_sink_keep(nanoseconds);
}

void ffm_collector_mark(const char *name, bool begins)
{
    ffm_portion_mark(name, begins);
}

void ffm_collector_arrive(void)
{
    ffm_threads_spare_instruments();
    ffm_clocks_tell(ffm_clock_read);
}

bool ffm_collector_unread(const char *path)
{
    return ffm_unread_open(path);
}

int ffm_collector_open(const char *folder, uint32_t mode, const char *plan_path)
{
    const ffm_plan_header *plan = NULL;
    if (mode & FFM_MODE_PLAN && (plan_path == NULL || (plan = map_plan(plan_path)) == NULL))
        return -2;
    ffm_wrappers_lead_to(ffm_call);
    ffm_thread_on_new(begin_thread);
    ffm_thread_on_end(end_thread);
    ffm_watch_when_gone(ffm_contents_gone);
    if (!ffm_sink_open(folder, mode))
        return -1;
    ffm_stacks_open();
    ffm_births_open();
    if (mode & FFM_MODE_NO_ORDINARY)
        ffm_pageable_rule_out();
    if (mode & FFM_MODE_WATCH && !ffm_watch_open(plan, mode & FFM_MODE_CHOSEN))
        return -3;
    ffm_call_set_mode(mode & ~(uint32_t)FFM_MODE_SAMPLES); /* calls are recorded alike */
    if (mode & FFM_MODE_LIVES) {
        ffm_thread_lives_open();
        ffm_lock_waits_open();
        ffm_processor_times_open();
    }
    if (mode & FFM_MODE_SAMPLES)
        ffm_samples_open();
    if (mode & FFM_MODE_WATCH && !ffm_trace_on() && !ffm_dispatch_open())
        return -4;
    if (mode & FFM_MODE_WATCH && (plan == NULL || mode & FFM_MODE_CHOSEN)) {
        ffm_clock_reads_open();
        ffm_handovers_open();
    }
    if (mode & FFM_MODE_WATCH && ffm_forks_happened())
        ffm_mappings_inherited();
    ffm_forks_handle(&(ffm_fork_handlers){before_fork, forked, become_child, go_on});
    return 0;
}

void ffm_collector_detach(void)
{
    ffm_detach();
}

void *ffm_collector_wrapper(uint32_t function)
{
    return ffm_wrapper(function);
}

void ffm_collector_bind(uint32_t function, void *address, void *original)
{
    if (function < FFM_FUNCTION_COUNT)
        ffm_call_bind(function, address, original);
}

bool ffm_collector_is_bound(const void *address)
{
    return ffm_call_at(address) != FFM_FUNCTION_COUNT;
}

void ffm_collector_python(const void *thread_state, const void *runtime, uint32_t version, bool dedicated)
{
    const ffm_python found = {
        .thread_state = thread_state, .runtime = runtime, .version = version, .dedicated = dedicated};
    ffm_python_found(&found);
}

void ffm_collector_modules_changed(void)
{
    ffm_modules_forget();
}

void ffm_collector_interpreter_clock(const void *function)
{
    ffm_clock_of_interpreter((uint64_t)function);
}

void ffm_collector_interpreter_code(const void *first, uint64_t bytes, bool for_scripts)
{
    ffm_clock_interpreter_code((uint64_t)first, bytes, for_scripts);
}

static ffm_followed *followed_at(uint32_t mode, uint32_t place)
{
    ffm_followed *const of_threads[] = {ffm_thread_lives, ffm_lock_waits, ffm_signal_waits, ffm_signal_handlers};
    for (size_t i = 0; mode & FFM_MODE_LIVES && i < sizeof of_threads / sizeof *of_threads; i++)
        for (ffm_followed *row = of_threads[i]; row->name != NULL; row++)
            if (place-- == 0)
                return row;
    return mode & FFM_MODE_WATCH ? ffm_followed_at(place) : NULL;
}

const char *ffm_collector_followed_name(uint32_t mode, uint32_t place)
{
    const ffm_followed *row = followed_at(mode, place);
    return row == NULL ? NULL : row->name;
}

void *ffm_collector_followed_wrapper(uint32_t mode, uint32_t place)
{
    const ffm_followed *row = followed_at(mode, place);
    /* A forked child has its parent's. */
    return row == NULL || row->original != NULL || (row->wanted != NULL && !row->wanted()) ? NULL : row->wrapper;
}

void ffm_collector_followed_bind(uint32_t mode, uint32_t place, void *original)
{
    ffm_followed *row = followed_at(mode, place);
    if (row != NULL)
        ffm_followed_bind(row, original);
}

void ffm_collector_counter(void *instruction, uint32_t bytes)
{
    ffm_counters_watch((uint64_t)instruction, bytes);
}

void ffm_collector_instrument(const void *start, uint64_t bytes)
{
    ffm_instruments_note((uint64_t)start, bytes);
}

void ffm_collector_foreign(void *start, uint64_t bytes, bool driver)
{
    ffm_foreign_add((uint64_t)start, (uint64_t)start + bytes, driver);
    if (driver)
        ffm_printing_driver((uint64_t)start);
}

void ffm_collector_ask(void *pointer_attribute, void *device_attribute, void *function_parameter,
                       void *kernel_parameter, void *current_context, void *context_device, void *device_uuid,
                       void *function_name, void *kernel_name, void *function_module, void *kernel_library)
{
    ffm_pageable_ask(device_attribute);
    ffm_boxes_ask(pointer_attribute);
    ffm_kernels_ask(function_parameter, kernel_parameter);
    ffm_contexts_ask(current_context, context_device, device_uuid, device_attribute);
    ffm_kernel_name_ask(function_name, kernel_name);
    ffm_loaded_code_ask(function_module, kernel_library);
    ffm_code_image_ask(device_attribute);
}

void ffm_collector_ask_graphs(void *capturing, void *nodes, void *type, void *copy, void *set, void *kernel,
                              void *kernel_before_12, void *child, void *kernel_attribute)
{
    ffm_captures_ask(capturing);
    void *const questions[FFM_GRAPH_QUESTIONS] = {nodes,           type, copy, set, kernel, kernel_before_12, child,
                                                  kernel_attribute};
    ffm_graphs_ask(questions);
}

void ffm_collector_entry_points(void *const *known, uint32_t count, void *found)
{
    ffm_entry_points_watch(known, count, (ffm_entry_found)(uintptr_t)found);
}

const char *ffm_collector_allocator_name(uint32_t place)
{
    return ffm_allocator_name(place);
}

void *ffm_collector_allocator_wrapper(uint32_t place)
{
    return ffm_allocator_wrapper(place);
}

void ffm_collector_allocator_bind(uint32_t place, void *original)
{
    ffm_allocator_bind(place, original);
}

bool ffm_collector_allocator_is_bound(uint32_t place)
{
    return ffm_allocator_is_bound(place);
}
