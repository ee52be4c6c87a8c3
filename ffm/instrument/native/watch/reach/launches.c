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

/* How many blocks a kernel has: in a description, or behind the handle. A missing description is left for the driver to
 * refuse. */
static void note_blocks(ffm_kernel_reach *reach, const ffm_function *function, const uint64_t *arguments)
{
    if (function->source >= 0) {
        CUlaunchConfig how;
        if (arguments[function->source] == 0)
            return;
        memcpy(&how, (const void *)arguments[function->source], sizeof how);
        reach->blocks[0] = how.gridDimX;
        reach->blocks[1] = how.gridDimY;
        reach->blocks[2] = how.gridDimZ;
        return;
    }
    for (int axis = 0; axis < 3; axis++)
        reach->blocks[axis] = (uint32_t)arguments[function->handle + 1 + axis];
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
