/* The driver's wait in other shapes; a macro chooses one.
 *
 * SPLIT            it happens in a part that the compiler puts away from the function's other code
 * TAIL_CALLED      the function that everybody calls jumps to another one, which waits
 * SPINNING         it polls
 * BY_SCHEDULING    the context's flags decide which of two functions is jumped to
 * SLICED           the callers poll, and sleep in between in `wait_for_a_moment`
 * none             a second function like the driver's own, under the name that -Dwait_for_gpu gives it
 */
#include "contexts/scheduler.h"
#include "contexts/wait.h"
#include "foundation/cuda_api.h"

extern "C" __attribute__((visibility("hidden"))) decltype(cuCtxGetFlags) implementation_cuCtxGetFlags;

namespace vgpu
{

#if !defined(SLICED) && !defined(SPINNING)
static inline __attribute__((always_inline)) void sleep_for_gpu(const std::vector<OperationReference> &operations)
{
    Scheduler &gpu = scheduler();
    for (const OperationReference &operation : operations) {
        if (!operation)
            continue;
        std::unique_lock<std::mutex> lock(gpu.mutex);
        gpu.progress.wait(lock, [&] { return operation->complete.load(std::memory_order_relaxed); });
    }
}
#endif

#if defined(SPINNING) || defined(BY_SCHEDULING)
static inline __attribute__((always_inline)) void poll_gpu(const std::vector<OperationReference> &operations)
{
    for (const OperationReference &operation : operations)
        while (operation && !operation->complete.load(std::memory_order_acquire))
            __builtin_ia32_pause();
}
#endif

#if defined(SPLIT)
__attribute__((cold, noinline)) static void note_wait()
{
    __asm__ volatile("" ::: "memory");
}

void wait_for_gpu(const std::vector<OperationReference> &operations)
{
    bool all_complete = true;
    for (const OperationReference &operation : operations)
        all_complete &= !operation || operation->complete.load(std::memory_order_acquire);
    if (all_complete)
        return;
    note_wait(); /* what calls a cold function is cold */
    sleep_for_gpu(operations);
}
#elif defined(TAIL_CALLED)
__attribute__((noinline, noclone)) void wait_inside(const std::vector<OperationReference> &operations)
{
    sleep_for_gpu(operations);
    __asm__ volatile("" ::: "memory");
}

void wait_for_gpu(const std::vector<OperationReference> &operations)
{
    wait_inside(operations);
}
#elif defined(SPINNING)
void wait_for_gpu(const std::vector<OperationReference> &operations)
{
    poll_gpu(operations);
    __asm__ volatile("" ::: "memory");
}
#elif defined(BY_SCHEDULING)
__attribute__((noinline, noclone)) void wait_blocking(const std::vector<OperationReference> &operations)
{
    sleep_for_gpu(operations);
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline, noclone)) void wait_spinning(const std::vector<OperationReference> &operations)
{
    poll_gpu(operations);
    __asm__ volatile("" ::: "memory");
}

void wait_for_gpu(const std::vector<OperationReference> &operations)
{
    unsigned flags = 0;
    implementation_cuCtxGetFlags(&flags);
    if (flags & CU_CTX_SCHED_BLOCKING_SYNC)
        wait_blocking(operations);
    else
        wait_spinning(operations);
}
#elif defined(SLICED)
void wait_for_a_moment(const OperationReference &operation)
{
    Scheduler &gpu = scheduler();
    std::unique_lock<std::mutex> lock(gpu.mutex);
    gpu.progress.wait_for(lock, std::chrono::milliseconds(1),
                          [&] { return operation->complete.load(std::memory_order_relaxed); });
}
#else
void wait_for_gpu(const std::vector<OperationReference> &operations)
{
    sleep_for_gpu(operations);
    __asm__ volatile("" ::: "memory");
}
#endif

} // namespace vgpu
