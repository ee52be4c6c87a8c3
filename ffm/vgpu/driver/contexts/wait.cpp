#include "wait.h"

#include <algorithm>

#include "foundation/configuration.h"
#include "scheduler.h"

namespace vgpu
{

void wait_for_gpu(const std::vector<OperationReference> &operations)
{
    Scheduler &gpu = scheduler();
    Nanoseconds end = 0; /* of the work that was waited for */
    for (const OperationReference &operation : operations) {
        if (!operation || operation->complete.load(std::memory_order_acquire))
            continue;
        std::unique_lock<std::mutex> lock(gpu.mutex);
        gpu.progress.wait(lock, [&] { return operation->complete.load(std::memory_order_relaxed); });
        end = std::max(end, operation->end);
    }
    if (end > 0)
        sleep_until(end + microseconds(configuration().wait_latency));
}

} // namespace vgpu
