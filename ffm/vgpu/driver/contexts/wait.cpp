#include "wait.h"

#include <algorithm>
#include <sched.h>

#include "foundation/configuration.h"
#include "scheduler.h"

namespace vgpu
{

namespace
{

/* How long a wait spins after the earliest time at which the operation can end. On a virtual machine, a sleeping
 * thread wakes up tens of microseconds late. */
constexpr Nanoseconds patience = 50'000;

/* Whether the operation ends while the caller spins. The caller does not spin on the operation's own core, because
 * that would delay it. */
bool ends_soon(const Scheduler &gpu, const Operation &operation)
{
    const auto complete = [&operation] { return operation.complete.load(std::memory_order_acquire); };
    const Nanoseconds end = std::max(operation.earliest_end, now()) + patience;
    while (!complete() && now() < end && gpu.core_of(operation) != sched_getcpu()) {
        if (now() < operation.earliest_end - patience)
            sleep_until(operation.earliest_end - patience);
        __builtin_ia32_pause();
    }
    return complete();
}

} // namespace

void wait_for_gpu(const std::vector<OperationReference> &operations)
{
    Scheduler &gpu = scheduler();
    Nanoseconds end = 0; /* when the last of the awaited operations ended */
    for (const OperationReference &operation : operations) {
        if (!operation || operation->complete.load(std::memory_order_acquire))
            continue;
        if (!ends_soon(gpu, *operation)) {
            std::unique_lock<std::mutex> lock(gpu.mutex);
            gpu.progress.wait(lock, [&] { return operation->complete.load(std::memory_order_relaxed); });
        }
        end = std::max(end, operation->end);
    }
    if (end > 0)
        sleep_until(end + microseconds(configuration().wait_latency));
}

} // namespace vgpu
