/* Runs operations in the order of their dependencies on the GPU's engines, on the wall clock. */
#pragma once

#include <condition_variable>
#include <map>
#include <set>
#include <vector>

#include "foundation/brief_mutex.h"
#include "timing_thread.h"
#include "workers.h"

namespace vgpu
{

class Scheduler
{
  public:
    /* Guards operations, streams and contexts. Held by the caller of every function marked "locked". */
    BriefMutex mutex;
    /* Notified, with the mutex, whenever an operation is done. */
    std::condition_variable progress;

    /* Locked. The operation starts when all predecessors (null ones are skipped) are done and its engine has room. */
    void submit(const OperationReference &operation, const std::vector<OperationReference> &predecessors);

    /* The core of this machine on which the operation runs or will run; negative if that is not known. */
    int core_of(const Operation &operation) const;

    Scheduler();

  private:
    struct MoreUrgent {
        bool operator()(const OperationReference &left, const OperationReference &right) const;
    };

    void make_ready(const OperationReference &operation);
    void finish(const OperationReference &operation, Nanoseconds end);
    void admit(Nanoseconds not_before);
    void start(const OperationReference &operation, Nanoseconds not_before);
    void leave(const OperationReference &operation);

    struct Device {
        std::set<OperationReference, MoreUrgent> ready[engine_count];
        int running[engine_count] = {};
        double occupied = 0;

        bool has_room(const Operation &operation) const;
    };

    std::uint64_t next_sequence_ = 0;
    std::map<int, Device> devices_;
    TimingThread timing_thread_;
    Workers workers_;
};

/* The one scheduler of the process. Never destroyed: GPU threads outlive the program's destructors. */
Scheduler &scheduler();

} // namespace vgpu
