/* Runs operations in the order of their dependencies on the GPU's engines, on the wall clock. */
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "operation.h"

namespace vgpu
{

class Scheduler
{
  public:
    /* Guards operations, streams and contexts. Held by the caller of every function marked "locked". */
    std::mutex mutex;
    /* Notified, with the mutex, whenever an operation is done. */
    std::condition_variable progress;

    /* Locked. The operation starts when all predecessors (null ones are skipped) are done and its engine has room. */
    void submit(const OperationReference &operation, const std::vector<OperationReference> &predecessors);

    Scheduler();

  private:
    struct MoreUrgent {
        bool operator()(const OperationReference &left, const OperationReference &right) const;
    };

    void make_ready(const OperationReference &operation);
    void finish(const OperationReference &operation, Nanoseconds end);
    void admit(Nanoseconds not_before, bool caller_continues);
    void start(const OperationReference &operation, Nanoseconds not_before, bool caller_continues);
    void add_worker();
    void work();
    void look_for_work(std::unique_lock<std::mutex> &lock);
    void learn_idleness(Nanoseconds idle);
    void run(const OperationReference &operation);

    struct Device {
        std::set<OperationReference, MoreUrgent> ready[engine_count];
        int running[engine_count] = {};
        double occupied = 0;

        bool has_room(const Operation &operation) const;
    };

    std::uint64_t next_sequence_ = 0;
    std::map<int, Device> devices_;

    std::condition_variable work_available_;
    std::deque<OperationReference> admitted_;
    int workers_ = 0;
    int idle_workers_ = 0; /* sleeping, looking for work, or about to */
    int looking_workers_ = 0;
    Nanoseconds look_ = 0; /* how long the first of them looks */
    std::atomic<int> admitted_count_{0};
    std::atomic<int> submitter_core_{-1}; /* of this machine, on which the last operation was submitted */
};

/* The one scheduler of the process. Never destroyed: GPU threads outlive the program's destructors. */
Scheduler &scheduler();

} // namespace vgpu
