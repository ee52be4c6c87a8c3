#include "kernels.h"

#include <cuda.h>
#include <stddef.h>
#include <string.h>

#include "graphs.h"
#include "pageable.h"

enum { TRACKED = 16 * 64, PARAMETERS = 4096 };

typedef int (*parameter_function)(uint64_t, size_t, size_t *, size_t *);

static parameter_function function_parameter, kernel_parameter;

void ffm_kernels_ask(void *of_function, void *of_kernel)
{
    function_parameter = (parameter_function)(uintptr_t)of_function;
    kernel_parameter = (parameter_function)(uintptr_t)of_kernel;
}

static void reach_block(ffm_kernel_reach *reach, uint32_t place)
{
    if (place >= TRACKED)
        reach->all = true;
    else
        reach->reached[place / 64] |= 1ULL << (place % 64);
}

static void scan(ffm_kernel_reach *reach, const void *words, size_t bytes)
{
    for (size_t offset = 0; offset + sizeof(uint64_t) <= bytes; offset += sizeof(uint64_t)) {
        uint64_t word;
        uint32_t place;
        memcpy(&word, (const char *)words + offset, sizeof word);
        if (reach->each != NULL)
            reach->each(word, reach->context);
        if (ffm_blocks_find(word, &place))
            reach_block(reach, place);
        else
            reach->pageable = reach->pageable || ffm_pageable_holds(word);
    }
}

/* Bytes of a parameter, 0 after the last; false if the driver does not report them. */
static bool parameter_bytes(uint64_t kernel, size_t place, size_t *bytes)
{
    size_t offset;
    const parameter_function ask[2] = {function_parameter, kernel_parameter};
    for (int i = 0; i < 2; i++) {
        if (ask[i] == NULL)
            continue;
        int result = ask[i](kernel, place, &offset, bytes);
        if (result == CUDA_SUCCESS)
            return true;
        if (result == CUDA_ERROR_INVALID_VALUE) {
            *bytes = 0;
            return true;
        }
    }
    return false;
}

static void scan_parameters(ffm_kernel_reach *reach, uint64_t kernel, void *const *parameters)
{
    for (size_t place = 0; place < PARAMETERS; place++) {
        size_t bytes;
        if (!parameter_bytes(kernel, place, &bytes)) {
            reach->all = true;
            reach->pageable = ffm_pageable_used();
            return;
        }
        if (bytes == 0)
            return;
        scan(reach, parameters[place], bytes);
    }
}

/* The packed form: pairs of a key and a value up to CU_LAUNCH_PARAM_END. */
static void scan_packed(ffm_kernel_reach *reach, void *const *extra)
{
    const void *buffer = NULL;
    size_t bytes = 0;
    for (; extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = extra[1];
        else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            bytes = *(const size_t *)extra[1];
    }
    if (buffer != NULL)
        scan(reach, buffer, bytes);
}

void ffm_kernel_scan(ffm_kernel_reach *reach, uint64_t kernel, void *const *parameters, void *const *extra)
{
    if (parameters != NULL)
        scan_parameters(reach, kernel, parameters);
    else if (extra != NULL)
        scan_packed(reach, extra);
}

/* For a graph, from what is known about its kernels. */
static void begin_graph(ffm_kernel_reach *reach, uint64_t executable)
{
    ffm_graph_fact fact;
    uint32_t found;
    reach->all = ffm_graph_has(executable, FFM_GRAPH_ALL);
    reach->pageable = ffm_pageable_used() &&
                      (ffm_graph_has(executable, FFM_GRAPH_PAGEABLE) || ffm_graph_has(executable, FFM_GRAPH_UNKNOWN));
    reach->none = !ffm_graph_has(executable, FFM_GRAPH_KERNEL);
    for (uint32_t place = 0; ffm_graph_next(executable, &place, &fact);)
        if (fact.kind == FFM_GRAPH_REACHES && ffm_blocks_find(fact.box.address, &found))
            reach_block(reach, found);
}

void ffm_kernel_begin(ffm_kernel_reach *reach, const ffm_function *function, const uint64_t *arguments)
{
    int parameters, extra;
    if (ffm_is_named(function, "cuLaunchKernelEx")) {
        parameters = 2;
        extra = 3;
    } else if (ffm_is_named(function, "cuLaunchKernel")) {
        parameters = 9;
        extra = 10;
    } else if (ffm_is_named(function, "cuLaunchCooperativeKernel") && function->stream >= 0) {
        parameters = 9;
        extra = -1;
    } else if (ffm_graphs_launched(function)) {
        begin_graph(reach, arguments[function->handle]);
        return;
    } else { /* the launches of CUDA 2 */
        reach->all = true;
        reach->pageable = ffm_pageable_used();
        return;
    }
    ffm_kernel_scan(reach, arguments[function->handle], (void *const *)arguments[parameters],
                    extra < 0 ? NULL : (void *const *)arguments[extra]);
}

bool ffm_kernel_next(ffm_kernel_reach *reach, ffm_block *block)
{
    for (; !reach->none && ffm_blocks_at(reach->next, block); reach->next++) {
        uint32_t place = reach->next;
        if (block->bytes == 0)
            continue;
        if (reach->all || block->handed ||
            (place < TRACKED && (reach->reached[place / 64] & 1ULL << (place % 64)) != 0)) {
            reach->next++;
            return true;
        }
    }
    return false;
}
