#include "scheduler.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <system_error>
#include <thread>
#include <utility>

#include "foundation/configuration.h"
#include "times.h"

namespace vgpu
{

namespace
{

/* How many operations may run at once on each engine. NVIDIA's devices run up to 128 kernels at once, but here those
 * that compute need a thread each. */
constexpr int limits[engine_count] = {0, 16, 1, 1, 16, 16};

/* Work that takes up to this long may delay other work. */
constexpr Nanoseconds brief = 20'000;

/* How long the leader looks for more work before it sleeps. */
constexpr Nanoseconds shortest_look = 20'000;
constexpr Nanoseconds longest_look = 1'000'000;

int index_of(Engine engine)
{
    return static_cast<int>(engine);
}

/* Whether the operation's work takes little time, and waits for nothing. */
bool is_brief(const Operation &operation)
{
    if (!operation.work)
        return true;
    if (!operation.moves_bytes)
        return false;
    if (!operation.estimate)
        return true;
    const Nanoseconds expected = operation.estimate->expected(operation.size);
    return expected > 0 && expected <= brief;
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

bool Scheduler::DueSooner::operator()(const OperationReference &left, const OperationReference &right) const
{
    return std::pair(left->due, left->sequence) < std::pair(right->due, right->sequence);
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
    return operation.engine != Engine::compute || running[engine] == 0 || operation.least_room <= room();
}

double Scheduler::Device::room() const
{
    return std::max(0.0, 1 - occupied);
}

/* A kernel that finds less room than it can use starts with some of its blocks. The others start as those of the
 * kernels before it finish. No further kernel starts meanwhile, because `occupied` counts what it can use. */
void Scheduler::Device::occupy(const OperationReference &operation)
{
    double held = room();
    if (held < operation->occupancy) {
        std::sort(computing.begin(), computing.end(), [](const auto &left, const auto &right) {
            return left->start + left->duration < right->start + right->duration;
        });
        double work = operation->occupancy * static_cast<double>(operation->duration);
        Nanoseconds time = operation->start;
        for (const OperationReference &other : computing) {
            const Nanoseconds end = std::max(time, other->start + other->duration);
            const double done = held * static_cast<double>(end - time);
            if (done >= work)
                break;
            work -= done;
            time = end;
            held = std::min(operation->occupancy, held + other->occupancy);
        }
        operation->duration = time - operation->start + static_cast<Nanoseconds>(work / held);
    }
    occupied += operation->occupancy;
    computing.push_back(operation);
}

void Scheduler::Device::vacate(const OperationReference &operation)
{
    computing.erase(std::find(computing.begin(), computing.end(), operation));
    occupied = computing.empty() ? 0 : occupied - operation->occupancy;
}

/* Starts the operations that are ready and fit, the most urgent first. On one engine, none overtakes another. An
 * operation that had to wait for room starts at `not_before`, the modelled end of the one that made room. */
void Scheduler::admit(Nanoseconds not_before, bool caller_leads)
{
    for (auto &[number, device] : devices_) {
        for (int engine = 1; engine < engine_count; ++engine) {
            auto &ready = device.ready[engine];
            while (!ready.empty() && device.has_room(**ready.begin())) {
                OperationReference operation = *ready.begin();
                ready.erase(ready.begin());
                ++device.running[engine];
                operation->start = std::max(operation->ready, not_before);
                if (operation->engine == Engine::compute)
                    device.occupy(operation);
                start(operation, caller_leads);
            }
        }
    }
}

/* Leaves the operation to the leader. */
void Scheduler::start(const OperationReference &operation, bool caller_leads)
{
    operation->due = operation->start + operation->duration;
    if (operation->estimate)
        operation->due -= operation->estimate->expected(operation->size);
    pending_.insert(operation);
    next_due_.store((*pending_.begin())->due, std::memory_order_release);
    if (!caller_leads)
        call_leader(operation->due);
}

/* Sees to it that a thread comes when something is due that was not known before. */
void Scheduler::call_leader(Nanoseconds due)
{
    if (led_) {
        if (due < leader_sleeps_until_)
            earlier_work_.notify_one();
    } else if (idle_workers_ > 0) {
        vacancy_.notify_one();
    } else {
        add_worker();
    }
}

void Scheduler::add_worker()
{
    sigset_t previous;
    block_asynchronous_signals(&previous);
    try {
        std::thread([this] { work(); }).detach();
        ++workers_;
        ++idle_workers_; /* already before it runs */
    } catch (const std::system_error &error) {
        /* The existing threads will run the work later. Without any thread, it would never run. */
        if (workers_ == 0) {
            std::fprintf(stderr, "vgpu: cannot create the GPU's thread: %s\n", error.what());
            std::abort();
        }
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
}

/* Waits as the leader until an operation is due, and returns it. */
OperationReference Scheduler::take_next(std::unique_lock<std::mutex> &lock)
{
    while (true) {
        const Nanoseconds due = next_due_.load(std::memory_order_relaxed);
        if (due <= now())
            break;
        const Nanoseconds since = now();
        Nanoseconds &look = due == never ? idle_look_ : busy_look_;
        await(lock, due, since + (due == never ? std::max(look, shortest_look) : look));
        const Nanoseconds idle = now() - since;
        const bool came = next_due_.load(std::memory_order_relaxed) < due;
        look = std::max(came && 2 * idle <= longest_look ? 2 * idle : 0, look - look / 8);
    }
    OperationReference next = *pending_.begin();
    pending_.erase(pending_.begin());
    next_due_.store(pending_.empty() ? never : (*pending_.begin())->due, std::memory_order_release);
    return next;
}

/* Returns when something is due, or when something has come that is due earlier than `due`. May return sooner.
 *
 * Waking a thread costs the launching program tens of microseconds on a virtual machine, and on a real GPU there is
 * no thread to wake. So the leader looks for such work before it sleeps: for twice as long as the program recently took
 * to bring some, unless that was longer than the longest look. A thread on the program's own core does not look, since
 * it would only delay the program. */
void Scheduler::await(std::unique_lock<std::mutex> &lock, Nanoseconds due, Nanoseconds look_until)
{
    lock.unlock();
    while (next_due_.load(std::memory_order_acquire) == due) {
        const Nanoseconds time = now();
        const int core = sched_getcpu();
        leader_core_.store(core, std::memory_order_relaxed);
        const bool looks = time < look_until && core != submitter_core_.load(std::memory_order_relaxed);
        if (time >= due || (!looks && due - time > worth_sleeping))
            break;
        __builtin_ia32_pause();
    }
    lock.lock();
    if (next_due_.load(std::memory_order_relaxed) != due || due - now() <= worth_sleeping)
        return;
    leader_sleeps_until_ = due;
    if (due == never)
        earlier_work_.wait(lock);
    else
        earlier_work_.wait_until(lock,
                                 std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due - wake_up_margin)));
    leader_sleeps_until_ = 0;
}

/* The loop of one engine thread. One of them leads: it waits for what is due next. If that takes long, or may wait for
 * other work, it leaves the lead to another thread first. The rest it does itself. So many operations can be under way
 * at once without a thread for each: where processors are few, such threads would delay each other and the program. */
void Scheduler::work()
{
    /* The default timer slack of 50 microseconds is as long as many copies take. */
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);
    pthread_setname_np(pthread_self(), "vgpu-engine");
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
        vacancy_.wait(lock, [this] { return !led_; });
        --idle_workers_;
        led_ = true;
        for (bool leads = true; leads;) {
            OperationReference operation = take_next(lock);
            leads = is_brief(*operation);
            if (!leads) {
                led_ = false;
                if (!pending_.empty())
                    call_leader((*pending_.begin())->due);
            }
            lock.unlock();
            run(*operation);
            lock.lock();
            if (!led_)
                leads = led_ = true;
            complete(operation, leads);
        }
        ++idle_workers_;
    }
}

/* The results must not appear before the modelled time is over, so the work is done at the end of that time. */
void Scheduler::run(Operation &operation)
{
    operation.core.store(sched_getcpu(), std::memory_order_relaxed);
    const Nanoseconds end = operation.start + operation.duration;
    const Nanoseconds begun = now();
    if (operation.work)
        operation.work();
    const Nanoseconds worked = now() - begun;
    if (operation.estimate)
        operation.estimate->learn(operation.size, worked);
    sleep_until(end);
    if (operation.engine == Engine::host_function || operation.engine == Engine::memory_wait)
        operation.end = now();
    else
        operation.end = std::max(end, operation.start + worked);
}

void Scheduler::complete(const OperationReference &operation, bool caller_leads)
{
    Device &device = devices_[operation->device];
    const int engine = index_of(operation->engine);
    --device.running[engine];
    if (operation->engine == Engine::compute)
        device.vacate(operation);
    write_times(*operation);
    finish(operation, operation->end);
    admit(operation->end, caller_leads);
}

int Scheduler::core_of(const Operation &operation) const
{
    const int core = operation.core.load(std::memory_order_relaxed);
    return core >= 0 ? core : leader_core_.load(std::memory_order_relaxed);
}

} // namespace vgpu
