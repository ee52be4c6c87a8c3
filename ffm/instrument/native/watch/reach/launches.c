#include "launches.h"

#include <cuda.h>
#include <stddef.h>
#include <string.h>

#include "graphs.h"
#include "pageable.h"

/* For a graph, from what is known about its kernels. */
static void scan_graph(ffm_kernel_reach *reach, uint64_t executable)
{
    ffm_graph_fact fact;
    uint32_t found;
    reach->all = ffm_graph_has(executable, FFM_GRAPH_ALL);
    reach->pageable = ffm_pageable_used() &&
                      (ffm_graph_has(executable, FFM_GRAPH_PAGEABLE) || ffm_graph_has(executable, FFM_GRAPH_UNKNOWN));
    reach->none = !ffm_graph_has(executable, FFM_GRAPH_KERNEL);
    for (uint32_t place = 0; ffm_graph_next(executable, &place, &fact);)
        if (fact.kind == FFM_GRAPH_REACHES && ffm_blocks_find(fact.box.address, &found))
            ffm_kernel_reach_block(reach, found);
}

/* How many blocks a kernel has in each dimension, and then how many threads a block has: in a description, or behind
 * the handle. A missing description is left for the driver to refuse. */
static bool shape_of(uint32_t shape[6], const ffm_function *function, const uint64_t *arguments)
{
    if (function->source < 0) {
        for (int axis = 0; axis < 6; axis++)
            shape[axis] = (uint32_t)arguments[function->handle + 1 + axis];
        return true;
    }
    if (arguments[function->source] == 0)
        return false;
    CUlaunchConfig how;
    memcpy(&how, (const void *)arguments[function->source], sizeof how);
    const uint32_t found[6] = {how.gridDimX, how.gridDimY, how.gridDimZ, how.blockDimX, how.blockDimY, how.blockDimZ};
    memcpy(shape, found, sizeof found);
    return true;
}

static void note_blocks(ffm_kernel_reach *reach, const ffm_function *function, const uint64_t *arguments)
{
    uint32_t shape[6];
    if (shape_of(shape, function, arguments))
        memcpy(reach->blocks, shape, sizeof reach->blocks);
}

uint32_t ffm_launch_size(const ffm_function *function, const uint64_t *arguments)
{
    uint32_t shape[6];
    if (function->effect != FFM_EFFECT_LAUNCH_KERNEL || function->parameters < 0 ||
        !shape_of(shape, function, arguments))
        return 0;
    const uint64_t threads = (uint64_t)shape[3] * shape[4] * shape[5];
    if (threads >> FFM_LAUNCH_BLOCKS_SHIFT != 0) /* the driver refuses it */
        return 0;
    uint64_t blocks = 1;
    for (int axis = 0; axis < 3; axis++) {
        blocks *= shape[axis];
        if (blocks > FFM_LAUNCH_MOST_BLOCKS)
            blocks = FFM_LAUNCH_MOST_BLOCKS;
    }
    return (uint32_t)(blocks << FFM_LAUNCH_BLOCKS_SHIFT | threads);
}

void ffm_launch_scan(ffm_kernel_reach *reach, const ffm_function *function, const uint64_t *arguments)
{
    if (ffm_graphs_launched(function)) {
        scan_graph(reach, arguments[function->handle]);
    } else if (function->parameters >= 0) {
        note_blocks(reach, function, arguments);
        ffm_kernel_scan(reach, arguments[function->handle], (void *const *)arguments[function->parameters],
                        function->extra < 0 ? NULL : (void *const *)arguments[function->extra]);
    } else { /* the launches of CUDA 2 */
        reach->all = true;
        reach->pageable = ffm_pageable_used();
    }
}

bool ffm_launch_stays_on_device(const ffm_function *function, const uint64_t *arguments)
{
    if (function->effect != FFM_EFFECT_LAUNCH_KERNEL || !ffm_blocks_complete())
        return false;
    if (ffm_blocks_count() == 0 && !ffm_pageable_used())
        return true;
    ffm_kernel_reach reach = {0};
    ffm_block block;
    ffm_launch_scan(&reach, function, arguments);
    return !reach.pageable && !ffm_kernel_next(&reach, &block);
}
