/* Runs operations in the order of their dependencies on the GPU's engines, on the wall clock. */
#pragma once

#include <atomic>
#include <condition_variable>
#include <limits>
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

    /* The core of this machine on which the operation runs, or on which a thread waits to run it; -1: not known. */
    int core_of(const Operation &operation) const;

  private:
    struct MoreUrgent {
        bool operator()(const OperationReference &left, const OperationReference &right) const;
    };
    struct DueSooner {
        bool operator()(const OperationReference &left, const OperationReference &right) const;
    };

    void make_ready(const OperationReference &operation);
    void finish(const OperationReference &operation, Nanoseconds end);
    void admit(Nanoseconds not_before, bool caller_leads);
    void start(const OperationReference &operation, bool caller_leads);
    void call_leader(Nanoseconds due);
    void add_worker();
    void work();
    OperationReference take_next(std::unique_lock<std::mutex> &lock);
    void await(std::unique_lock<std::mutex> &lock, Nanoseconds due, Nanoseconds look_until);
    void run(Operation &operation);
    void complete(const OperationReference &operation, bool caller_leads);

    struct Device {
        std::set<OperationReference, MoreUrgent> ready[engine_count];
        int running[engine_count] = {};
        double occupied = 0;                       /* by kernels, if each had the room that it can use */
        std::vector<OperationReference> computing; /* those kernels */

        double room() const;
        bool has_room(const Operation &operation) const;
        void occupy(const OperationReference &operation);
        void vacate(const OperationReference &operation);
    };

    std::uint64_t next_sequence_ = 0;
    std::map<int, Device> devices_;

    static constexpr Nanoseconds never = std::numeric_limits<Nanoseconds>::max();

    std::set<OperationReference, DueSooner> pending_; /* admitted, not due yet */
    std::atomic<Nanoseconds> next_due_{never};        /* of those */
    bool led_ = false;                                /* a thread looks after them */
    Nanoseconds leader_sleeps_until_ = 0;             /* that thread; 0: it does not sleep */
    std::condition_variable earlier_work_;            /* for it: something is due before that */
    std::condition_variable vacancy_;                 /* for the others: nobody leads */
    int workers_ = 0;
    int idle_workers_ = 0;      /* sleeping until nobody leads, or about to */
    Nanoseconds idle_look_ = 0; /* how long the leader looks for work if there is none, */
    Nanoseconds busy_look_ = 0; /* and if there is some */
    std::atomic<int> leader_core_{-1};
    std::atomic<int> submitter_core_{-1}; /* of this machine, on which the last operation was submitted */
};

/* The one scheduler of the process. Never destroyed: GPU threads outlive the program's destructors. */
Scheduler &scheduler();

} // namespace vgpu
