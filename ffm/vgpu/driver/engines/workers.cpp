#include "workers.h"

#include <cstdio>
#include <cstdlib>
#include <sched.h>

namespace vgpu
{

Workers::Workers(std::mutex &mutex, Over over) : mutex_(mutex), over_(std::move(over)) {}

void Workers::add(const OperationReference &operation)
{
    admitted_.push_back(operation);
    const int waiting = static_cast<int>(admitted_.size());
    admitted_count_.store(waiting, std::memory_order_release);
    if (waiting > idle_workers_)
        add_worker();
    else if (waiting > looking_workers_)
        work_available_.notify_one();
}

/* The existing threads get to the work if there can be no more; without any, nothing ever would. */
void Workers::add_worker()
{
    if (start_gpu_thread("vgpu-engine", [this] { work(); })) {
        ++workers_;
        ++idle_workers_;
    } else if (workers_ == 0) {
        std::fprintf(stderr, "vgpu: cannot create the GPU's thread\n");
        std::abort();
    }
}

/* One of those without work looks for more as long as it may pay, the others shortly. */
void Workers::look_for_work(std::unique_lock<std::mutex> &lock)
{
    if (!admitted_.empty())
        return;
    const bool is_first = looking_workers_++ == 0;
    const Nanoseconds since = now();
    const Idleness idleness = is_first ? idleness_ : Idleness();
    lock.unlock();
    while (admitted_count_.load(std::memory_order_acquire) == 0 && idleness.looks(since))
        __builtin_ia32_pause();
    lock.lock();
    --looking_workers_;
    work_available_.wait(lock, [this] { return !admitted_.empty(); });
    if (is_first)
        idleness_.learn(now() - since);
}

/* One thread. It counts as idle from its creation, and as looking for work as soon as its work is done. */
void Workers::work()
{
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
        look_for_work(lock);
        --idle_workers_;
        OperationReference operation = admitted_.front();
        admitted_.pop_front();
        admitted_count_.store(static_cast<int>(admitted_.size()), std::memory_order_release);
        lock.unlock();
        run(*operation);
        lock.lock();
        ++idle_workers_;
        ++looking_workers_;
        over_(operation);
        --looking_workers_;
    }
}

/* The bytes must not be there before the modelled time is over, so the work happens at its end. */
void Workers::run(Operation &operation)
{
    operation.core.store(sched_getcpu(), std::memory_order_relaxed);
    const Nanoseconds end = operation.start + operation.duration;
    sleep_until(end - expected_work(operation));
    do_work(operation);
    sleep_until(end);
    const bool as_long_as_it_took =
        operation.engine == Engine::host_function || operation.engine == Engine::memory_wait;
    operation.end = as_long_as_it_took ? now() : end_of(operation);
}

} // namespace vgpu
