#include "wait.h"

#include <algorithm>
#include <sched.h>

#include "foundation/configuration.h"
#include "scheduler.h"

namespace vgpu
{

namespace
{

/* How much later than at its earliest end an operation is waited for without sleeping: a thread that sleeps until it is
 * woken returns tens of microseconds late on a virtual machine. */
constexpr Nanoseconds patience = 50'000;

/* Whether the operation ends while the caller looks for its end. On the same core it would keep it from ending. */
bool ends_soon(const Operation &operation)
{
    const auto complete = [&operation] { return operation.complete.load(std::memory_order_acquire); };
    const Nanoseconds end = std::max(operation.earliest_end, now()) + patience;
    while (!complete() && now() < end && operation.core.load(std::memory_order_relaxed) != sched_getcpu()) {
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
    Nanoseconds end = 0; /* of the work that was waited for */
    for (const OperationReference &operation : operations) {
        if (!operation || operation->complete.load(std::memory_order_acquire))
            continue;
        if (!ends_soon(*operation)) {
            std::unique_lock<std::mutex> lock(gpu.mutex);
            gpu.progress.wait(lock, [&] { return operation->complete.load(std::memory_order_relaxed); });
        }
        end = std::max(end, operation->end);
    }
    if (end > 0)
        sleep_until(end + microseconds(configuration().wait_latency));
}

} // namespace vgpu
