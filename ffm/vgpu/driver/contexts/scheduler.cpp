#include "scheduler.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <system_error>
#include <thread>

#include "foundation/configuration.h"
#include "times.h"

namespace vgpu
{

namespace
{

/* How many operations may be in flight on each engine. NVIDIA's devices run up to 128 kernels at a time, but every one
 * in flight needs a thread here. */
constexpr int limits[engine_count] = {0, 16, 1, 1, 16, 16};

/* How long a thread that ran out of work looks for more before it sleeps. */
constexpr Nanoseconds shortest_look = 20'000;
constexpr Nanoseconds longest_look = 1'000'000;

int index_of(Engine engine)
{
    return static_cast<int>(engine);
}

/* Faults must stay deliverable: the kernel kills a process whose thread faults with the signal blocked, and a program
 * or a tool may have a handler. */
void block_asynchronous_signals(sigset_t *previous)
{
    sigset_t blocked;
    sigfillset(&blocked);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, previous);
}

/* When the device can begin the operation after one that it was queued behind. */
Nanoseconds ready_behind(const Operation &operation, Nanoseconds end)
{
    Nanoseconds gap = operation.engine == Engine::compute ? microseconds(configuration().start_gap) : 0;
    return std::max(operation.ready, end + gap);
}

} // namespace

Scheduler &scheduler()
{
    static Scheduler *instance = new Scheduler;
    return *instance;
}

/* The mutex is held for less time than it takes to sleep and be woken, by the program that enqueues and by the thread
 * that finds the work at once: so whoever finds it taken looks again for a while (an adaptive mutex). A GPU has no such
 * thread, and its program no such wait. */
Scheduler::Scheduler()
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(mutex.native_handle(), &attributes);
    pthread_mutexattr_destroy(&attributes);
}

bool Scheduler::MoreUrgent::operator()(const OperationReference &left, const OperationReference &right) const
{
    if (left->priority != right->priority)
        return left->priority < right->priority;
    return left->sequence < right->sequence;
}

void Scheduler::submit(const OperationReference &operation, const std::vector<OperationReference> &predecessors)
{
    operation->sequence = next_sequence_++;
    operation->submitted = now();
    submitter_core_.store(sched_getcpu(), std::memory_order_relaxed);
    operation->ready =
        std::max(operation->submitted, CallCost::work_done()) + microseconds(configuration().start_latency);
    operation->earliest_end = operation->ready + operation->duration;
    for (const OperationReference &predecessor : predecessors) {
        if (predecessor && !predecessor->complete.load(std::memory_order_relaxed)) {
            predecessor->successors.push_back(operation);
            ++operation->unfinished_predecessors;
            operation->earliest_end = std::max(
                operation->earliest_end, ready_behind(*operation, predecessor->earliest_end) + operation->duration);
        }
    }
    if (operation->unfinished_predecessors == 0) {
        make_ready(operation);
        admit(operation->ready, false);
    }
}

void Scheduler::make_ready(const OperationReference &operation)
{
    if (operation->engine == Engine::none)
        finish(operation, operation->ready);
    else
        devices_[operation->device].ready[index_of(operation->engine)].insert(operation);
}

/* Marks the operation done, and every mark after it; the others become ready. */
void Scheduler::finish(const OperationReference &operation, Nanoseconds end)
{
    std::vector<OperationReference> over = {operation};
    operation->end = end;
    while (!over.empty()) {
        OperationReference done = over.back();
        over.pop_back();
        done->work = nullptr;
        done->complete.store(true, std::memory_order_release);
        for (OperationReference &successor : done->successors) {
            successor->ready = ready_behind(*successor, done->end);
            if (--successor->unfinished_predecessors > 0)
                continue;
            if (successor->engine == Engine::none) {
                successor->end = successor->ready;
                over.push_back(successor);
            } else {
                devices_[successor->device].ready[index_of(successor->engine)].insert(successor);
            }
        }
        done->successors.clear();
    }
    progress.notify_all();
}

bool Scheduler::Device::has_room(const Operation &operation) const
{
    int engine = index_of(operation.engine);
    if (running[engine] >= limits[engine])
        return false;
    return operation.engine != Engine::compute || running[engine] == 0 || occupied + operation.occupancy <= 1;
}

/* Starts whatever is ready and fits, the most urgent first; nothing overtakes on the same engine. An operation that had
 * to wait for room starts at `not_before`, the modelled end of the operation that made room. */
void Scheduler::admit(Nanoseconds not_before, bool caller_continues)
{
    for (auto &[number, device] : devices_) {
        for (int engine = 1; engine < engine_count; ++engine) {
            auto &ready = device.ready[engine];
            while (!ready.empty() && device.has_room(**ready.begin())) {
                OperationReference operation = *ready.begin();
                ready.erase(ready.begin());
                ++device.running[engine];
                if (operation->engine == Engine::compute)
                    device.occupied += operation->occupancy;
                start(operation, not_before, caller_continues);
            }
        }
    }
}

/* Hands the operation to a worker. */
void Scheduler::start(const OperationReference &operation, Nanoseconds not_before, bool caller_continues)
{
    operation->start = std::max(operation->ready, not_before);
    admitted_.push_back(operation);
    int own = caller_continues ? 1 : 0;
    int waiting = static_cast<int>(admitted_.size());
    admitted_count_.store(waiting, std::memory_order_release);
    if (waiting > idle_workers_ + own)
        add_worker();
    else if (waiting > looking_workers_ + own)
        work_available_.notify_one();
}

void Scheduler::add_worker()
{
    sigset_t previous;
    block_asynchronous_signals(&previous);
    try {
        std::thread([this] { work(); }).detach();
        ++workers_;
        ++idle_workers_;
    } catch (const std::system_error &error) {
        /* The existing threads will get to it; without any, nothing ever would. */
        if (workers_ == 0) {
            std::fprintf(stderr, "vgpu: cannot create the GPU's thread: %s\n", error.what());
            std::abort();
        }
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

/* To wake a thread costs the program that launches tens of microseconds on a virtual machine, and a GPU has no thread
 * to be woken. So a thread that runs out of work looks for more before it sleeps. One of them looks for twice as long
 * as the program lately took to enqueue more, if that was not longer than the longest look. On the program's own core
 * it would only keep the program from enqueuing. */
void Scheduler::look_for_work(std::unique_lock<std::mutex> &lock)
{
    if (!admitted_.empty())
        return;
    const bool is_first = looking_workers_++ == 0;
    const Nanoseconds since = now();
    const Nanoseconds end = since + (is_first ? std::max(look_, shortest_look) : shortest_look);
    lock.unlock();
    while (admitted_count_.load(std::memory_order_acquire) == 0 && now() < end &&
           sched_getcpu() != submitter_core_.load(std::memory_order_relaxed))
        __builtin_ia32_pause();
    lock.lock();
    --looking_workers_;
    work_available_.wait(lock, [this] { return !admitted_.empty(); });
    if (is_first)
        learn_idleness(now() - since);
}

void Scheduler::learn_idleness(Nanoseconds idle)
{
    const Nanoseconds wanted = 2 * idle <= longest_look ? 2 * idle : 0;
    look_ = std::max(wanted, look_ - look_ / 8);
}

/* One thread of the GPU. It counts as idle from its creation. */
void Scheduler::work()
{
    /* The default timer slack of 50 microseconds would be as long as many copies. */
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    pthread_setname_np(pthread_self(), "vgpu-engine");
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
        look_for_work(lock);
        --idle_workers_;
        OperationReference operation = admitted_.front();
        admitted_.pop_front();
        admitted_count_.store(static_cast<int>(admitted_.size()), std::memory_order_release);
        lock.unlock();
        operation->core.store(sched_getcpu(), std::memory_order_relaxed);
        run(operation);
        lock.lock();

        Device &device = devices_[operation->device];
        int engine = index_of(operation->engine);
        --device.running[engine];
        if (operation->engine == Engine::compute)
            device.occupied = device.running[engine] == 0 ? 0 : device.occupied - operation->occupancy;
        write_times(*operation);
        finish(operation, operation->end);
        admit(operation->end, true);
        ++idle_workers_;
    }
}

/* The bytes must not be there before the modelled time is over, so the work happens at its end. */
void Scheduler::run(const OperationReference &operation)
{
    Nanoseconds end = operation->start + operation->duration;
    if (operation->estimate)
        sleep_until(end - operation->estimate->expected(operation->size));
    else
        sleep_until(end);
    Nanoseconds begun = now();
    if (operation->work)
        operation->work();
    Nanoseconds worked = now() - begun;
    if (operation->estimate)
        operation->estimate->learn(operation->size, worked);
    sleep_until(end);
    if (operation->engine == Engine::host_function || operation->engine == Engine::memory_wait)
        operation->end = now();
    else
        operation->end = std::max(end, operation->start + worked);
}

} // namespace vgpu
