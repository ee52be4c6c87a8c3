#include "wait.h"

#include "scheduler.h"

namespace vgpu
{

void wait_for_gpu(const std::vector<OperationReference> &operations)
{
    Scheduler &gpu = scheduler();
    for (const OperationReference &operation : operations) {
        if (!operation || operation->complete.load(std::memory_order_acquire))
            continue;
        std::unique_lock<std::mutex> lock(gpu.mutex);
        gpu.progress.wait(lock, [&] { return operation->complete.load(std::memory_order_relaxed); });
    }
}

} // namespace vgpu
