/* Included before a source of the driver: gives it a copy of the wait in its own code. */
#pragma once

#include "contexts/scheduler.h"
#include "contexts/wait.h"

namespace vgpu
{

static inline __attribute__((always_inline)) void wait_here(const std::vector<OperationReference> &operations)
{
    Scheduler &gpu = scheduler();
    for (const OperationReference &operation : operations) {
        if (!operation)
            continue;
        std::unique_lock<std::mutex> lock(gpu.mutex);
        gpu.progress.wait(lock, [&] { return operation->complete.load(std::memory_order_relaxed); });
    }
}

} // namespace vgpu

#define wait_for_gpu wait_here
