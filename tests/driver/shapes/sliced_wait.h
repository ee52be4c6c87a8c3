/* Included before a source of the driver: it looks again and again, and sleeps for a moment in between. */
#pragma once

#include "contexts/wait.h"

namespace vgpu
{

/* Returns after a millisecond, whatever the GPU does. */
__attribute__((noinline, noclone)) void wait_for_a_moment(const OperationReference &operation);

static inline __attribute__((always_inline)) void wait_in_slices(const std::vector<OperationReference> &operations)
{
    for (const OperationReference &operation : operations)
        while (operation && !operation->complete.load(std::memory_order_acquire))
            wait_for_a_moment(operation);
}

} // namespace vgpu

#define wait_for_gpu wait_in_slices
