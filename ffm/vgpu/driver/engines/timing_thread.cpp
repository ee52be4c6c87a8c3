#include "timing_thread.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sched.h>

namespace vgpu
{

namespace
{

/* Work that lasts longer makes other operations late by more than it costs to wake a worker. */
constexpr Nanoseconds short_work = 20'000;

} // namespace

TimingThread::TimingThread(std::mutex &mutex, Over over) : mutex_(mutex), over_(std::move(over)) {}

bool TimingThread::suits(const Operation &operation)
{
    if (operation.engine == Engine::host_function || operation.engine == Engine::memory_wait)
        return false;
    if (!operation.work)
        return true;
    if (operation.may_wait)
        return false;
    if (!operation.estimate)
        return true;
    const Nanoseconds expected = expected_work(operation);
    return expected > 0 && expected <= short_work;
}

bool TimingThread::Earlier::operator()(const OperationReference &left, const OperationReference &right) const
{
    if (left->due != right->due)
        return left->due < right->due;
    return left->sequence < right->sequence;
}

/* A thread that sleeps for longer than until the operation's time is woken. */
void TimingThread::add(const OperationReference &operation)
{
    operation->due = operation->start + operation->duration - expected_work(*operation);
    insert(operation);
    if (operation->due - wake_up_margin < asleep_until_)
        earlier_due_.notify_one();
    if (started_)
        return;
    started_ = start_gpu_thread("vgpu-timing", [this] { keep_time(); });
    if (!started_) {
        std::fprintf(stderr, "vgpu: cannot create the GPU's thread\n");
        std::abort();
    }
}

void TimingThread::insert(const OperationReference &operation)
{
    under_way_.insert(operation);
    due_.store((*under_way_.begin())->due, std::memory_order_release);
}

void TimingThread::remove(const OperationReference &operation)
{
    under_way_.erase(operation);
    due_.store(under_way_.empty() ? never : (*under_way_.begin())->due, std::memory_order_release);
}

/* The bytes must not be there before the modelled time is over, so the work happens at its end. */
void TimingThread::keep_time()
{
    std::unique_lock<std::mutex> lock(mutex_);
    Nanoseconds idle_since = now();
    while (true) {
        /* No other thread removes it, and it stays the first as long as `due_` is the same. */
        const OperationReference first = under_way_.empty() ? nullptr : *under_way_.begin();
        const Nanoseconds due = due_.load(std::memory_order_relaxed);
        lock.unlock();
        const Seen seen = look(due, idle_since);
        if (seen == Seen::due)
            do_work(*first);
        lock.lock();
        if (seen == Seen::due) {
            end_or_wait(first);
            idle_since = now();
            continue;
        }
        if (seen == Seen::nothing)
            sleep(lock);
        if (due_.load(std::memory_order_relaxed) < due) {
            idleness_.learn(now() - idle_since);
            idle_since = now();
        }
    }
}

/* Its work is done, maybe before its modelled end. */
void TimingThread::end_or_wait(const OperationReference &operation)
{
    remove(operation);
    operation->end = end_of(*operation);
    if (now() < operation->end) {
        operation->due = operation->end;
        insert(operation);
    } else {
        over_(operation);
    }
}

/* Looks until the time has come or an earlier one is known, as long as that may pay. */
TimingThread::Seen TimingThread::look(Nanoseconds due, Nanoseconds idle_since)
{
    while (due_.load(std::memory_order_acquire) == due) {
        const Nanoseconds left = due - now();
        if (left <= 0)
            return Seen::due;
        const int core = sched_getcpu();
        if (core_.load(std::memory_order_relaxed) != core)
            core_.store(core, std::memory_order_relaxed);
        if (left > wake_up_margin + wake_up_margin / 2 && !idleness_.looks(idle_since))
            return Seen::nothing;
        __builtin_ia32_pause();
    }
    return Seen::earlier;
}

/* Until shortly before the first operation's time, or until an earlier one is added. */
void TimingThread::sleep(std::unique_lock<std::mutex> &lock)
{
    const Nanoseconds due = due_.load(std::memory_order_relaxed);
    asleep_until_ = due == never ? never : due - wake_up_margin;
    if (due == never)
        earlier_due_.wait(lock);
    else
        earlier_due_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(asleep_until_)));
    asleep_until_ = 0;
}

} // namespace vgpu
