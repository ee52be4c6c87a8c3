#include "scheduler.h"

#include <algorithm>

#include "foundation/configuration.h"
#include "times.h"

namespace vgpu
{

namespace
{

/* How many operations may be in flight on each engine. NVIDIA's devices run up to 128 kernels at a time, but every one
 * that computes needs a thread here. */
constexpr int limits[engine_count] = {0, 16, 1, 1, 16, 16};

int index_of(Engine engine)
{
    return static_cast<int>(engine);
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

Scheduler::Scheduler()
    : timing_thread_(mutex, [this](const OperationReference &operation) { leave(operation); }),
      workers_(mutex, [this](const OperationReference &operation) { leave(operation); })
{
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
    Idleness::enqueue();
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
        admit(operation->ready);
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
void Scheduler::admit(Nanoseconds not_before)
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
                start(operation, not_before);
            }
        }
    }
}

void Scheduler::start(const OperationReference &operation, Nanoseconds not_before)
{
    operation->start = std::max(operation->ready, not_before);
    if (TimingThread::suits(*operation))
        timing_thread_.add(operation);
    else
        workers_.add(operation);
}

/* Locked. The operation is over: its engine has room, and its successors have one predecessor less. */
void Scheduler::leave(const OperationReference &operation)
{
    Device &device = devices_[operation->device];
    const int engine = index_of(operation->engine);
    --device.running[engine];
    if (operation->engine == Engine::compute)
        device.occupied = device.running[engine] == 0 ? 0 : device.occupied - operation->occupancy;
    write_times(*operation);
    finish(operation, operation->end);
    admit(operation->end);
}

int Scheduler::core_of(const Operation &operation) const
{
    const int core = operation.core.load(std::memory_order_relaxed);
    return core >= 0 ? core : timing_thread_.core();
}

} // namespace vgpu
