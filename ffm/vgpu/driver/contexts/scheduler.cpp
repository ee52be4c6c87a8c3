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

/* How many operations may run at once on each engine. NVIDIA's devices run up to 128 kernels at once, but here each
 * one needs a thread. */
constexpr int limits[engine_count] = {0, 16, 1, 1, 16, 16};

/* How long an idle thread looks for more work before it sleeps. */
constexpr Nanoseconds shortest_look = 20'000;
constexpr Nanoseconds longest_look = 1'000'000;

int index_of(Engine engine)
{
    return static_cast<int>(engine);
}

/* Fault signals must not be blocked: the kernel kills a process whose thread faults with the signal blocked, and the
 * program or a tool may have a handler. */
void block_asynchronous_signals(sigset_t *previous)
{
    sigset_t blocked;
    sigfillset(&blocked);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, previous);
}

/* When the device can start an operation that was queued behind one that ends at `end`. */
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

/* The mutex is adaptive: a thread that finds it taken spins for a while before it sleeps. It is held only briefly,
 * by the program that enqueues and by the engine thread that takes the work. Sleeping and waking would take longer
 * than that, and a real program would not have to wait here at all. */
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

/* Completes the operation, and all marks that follow it. Other successors become ready. */
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

/* Starts the operations that are ready and fit, the most urgent first. On one engine, none overtakes another. An
 * operation that had to wait for room starts at `not_before`, the modelled end of the one that made room. */
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

/* Hands the operation to a worker thread. */
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
        /* The existing threads will run the work later. Without any thread, it would never run. */
        if (workers_ == 0) {
            std::fprintf(stderr, "vgpu: cannot create the GPU's thread: %s\n", error.what());
            std::abort();
        }
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

/* Waking a thread costs the launching program tens of microseconds on a virtual machine, and on a real GPU there is
 * no thread to wake. So an idle thread looks for more work before it sleeps. One of them looks for twice as long as
 * the program recently took to enqueue more, unless that was longer than the longest look. A thread on the program's
 * own core does not look, since it would only delay the program. */
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

/* The loop of one engine thread. The thread counts as idle as soon as it is created. */
void Scheduler::work()
{
    /* The default timer slack of 50 microseconds is as long as many copies take. */
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

/* The results must not appear before the modelled time is over, so the work is done at the end of that time. */
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
