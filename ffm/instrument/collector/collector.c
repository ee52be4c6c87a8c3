#include "collector.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allocators.h"
#include "blocks.h"
#include "boxes.h"
#include "calls.h"
#include "captures.h"
#include "clock_reads.h"
#include "contents.h"
#include "contexts.h"
#include "dispatch.h"
#include "entry_points.h"
#include "foreign.h"
#include "forks.h"
#include "gpu_times.h"
#include "graphs.h"
#include "host_blocks.h"
#include "instruments.h"
#include "kernels.h"
#include "modules.h"
#include "pageable.h"
#include "python_frames.h"
#include "readback.h"
#include "sink.h"
#include "stacks.h"
#include "thread.h"
#include "threads.h"
#include "trace.h"
#include "waits.h"
#include "watch.h"
#include "wrappers.h"

static void before_fork(void)
{
    if (ffm_call_mode() & FFM_MODE_WATCH)
        ffm_watch_before_fork();
}

static void forked(void)
{
    if (ffm_call_mode() & FFM_MODE_WATCH)
        ffm_watch_forked();
}

static void become_child(void)
{
    if (!ffm_sink_reopen())
        return;
    ffm_blocks_after_fork();
    ffm_contexts_after_fork();
    ffm_waits_after_fork();
    ffm_readback_after_fork();
    ffm_modules_after_fork();
    ffm_python_after_fork();
    ffm_stacks_after_fork();
    ffm_thread_after_fork();
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

static const uint8_t *map_plan(const char *path, uint64_t *keys)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0)
        return NULL;
    *keys = (uint64_t)status.st_size / FFM_KEY_BYTES;
    /* An empty plan watches nothing, but a mapping may not be empty. */
    size_t bytes = status.st_size > 0 ? (size_t)status.st_size : FFM_KEY_BYTES;
    void *pages = mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    return pages == MAP_FAILED ? NULL : pages;
}

void ffm_collector_arrive(void)
{
    ffm_threads_spare_instruments();
}

int ffm_collector_open(const char *folder, uint32_t mode, const char *plan_path)
{
    const uint8_t *plan = NULL;
    uint64_t keys = 0;
    if (mode & FFM_MODE_PLAN && (plan = map_plan(plan_path, &keys)) == NULL)
        return -2;
    if (!ffm_sink_open(folder, mode))
        return -1;
    ffm_stacks_open();
    if (mode & FFM_MODE_NO_ORDINARY)
        ffm_pageable_rule_out();
    if (mode & FFM_MODE_WATCH && !ffm_watch_open(plan, keys))
        return -3;
    ffm_call_set_mode(mode);
    if (mode & FFM_MODE_WATCH && !ffm_trace_on() && !ffm_dispatch_open())
        return -4;
    ffm_forks_handle(&(ffm_fork_handlers){before_fork, forked, become_child, go_on});
    return 0;
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
    for (uint32_t i = 0; i < FFM_FUNCTION_COUNT; i++)
        if (ffm_call_address(i) == address)
            return true;
    return false;
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

void ffm_collector_interpreter_lock(const void *function)
{
    ffm_clock_interpreter_lock((uint64_t)function);
}

void ffm_collector_instrument(const void *start, uint64_t bytes)
{
    ffm_instruments_note((uint64_t)start, bytes);
}

void ffm_collector_foreign(void *start, uint64_t bytes, bool driver)
{
    ffm_foreign_add((uint64_t)start, (uint64_t)start + bytes, driver);
}

void ffm_collector_ask(void *pointer_attribute, void *device_attribute, void *function_parameter,
                       void *kernel_parameter, void *current_context)
{
    ffm_pageable_ask(device_attribute);
    ffm_boxes_ask(pointer_attribute);
    ffm_kernels_ask(function_parameter, kernel_parameter);
    ffm_contexts_ask(current_context);
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
