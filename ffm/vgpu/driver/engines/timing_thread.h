/* The thread of the GPU that ends all operations whose work is short on this machine.
 *
 * One thread can do that for any number of them, in the order of their modelled ends. Where processors are few, a
 * thread for each of them would keep the program's threads and the others from a processor when their own time comes.
 */
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <set>

#include "gpu_threads.h"
#include "idleness.h"

namespace vgpu
{

class TimingThread
{
  public:
    /* `mutex` is the scheduler's; "locked" means that the caller holds it. */
    TimingThread(std::mutex &mutex, Over over);

    /* Whether the operation belongs here: its work is known to be short, and never waits. */
    static bool suits(const Operation &operation);

    /* Locked. Executes the operation at its modelled time. */
    void add(const OperationReference &operation);

    /* Where the thread runs, or ran last before it slept. */
    int core() const
    {
        return core_.load(std::memory_order_relaxed);
    }

  private:
    struct Earlier {
        bool operator()(const OperationReference &left, const OperationReference &right) const;
    };

    enum class Seen { due, earlier, nothing };

    void insert(const OperationReference &operation);
    void remove(const OperationReference &operation);
    void keep_time();
    void end_or_wait(const OperationReference &operation);
    Seen look(Nanoseconds due, Nanoseconds idle_since);
    void sleep(std::unique_lock<std::mutex> &lock);

    static constexpr Nanoseconds never = INT64_MAX;

    std::mutex &mutex_;
    const Over over_;
    std::condition_variable earlier_due_;
    std::set<OperationReference, Earlier> under_way_;
    alignas(64) std::atomic<Nanoseconds> due_{never}; /* of the first of these */
    alignas(64) std::atomic<int> core_{-1};           /* apart, as those who wait look at it all the time */
    bool started_ = false;
    Nanoseconds asleep_until_ = 0; /* 0: awake */
    Idleness idleness_;
};

} // namespace vgpu
