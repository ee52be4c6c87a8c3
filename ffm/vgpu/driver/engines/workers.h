/* Threads of the GPU for work that lasts on this machine, or that may wait: one for each piece. */
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>

#include "gpu_threads.h"
#include "idleness.h"

namespace vgpu
{

class Workers
{
  public:
    /* `mutex` is the scheduler's; "locked" means that the caller holds it. */
    Workers(std::mutex &mutex, Over over);

    /* Locked. Executes the operation at its modelled time. */
    void add(const OperationReference &operation);

  private:
    void add_worker();
    void work();
    void look_for_work(std::unique_lock<std::mutex> &lock);
    void run(Operation &operation);

    std::mutex &mutex_;
    const Over over_;
    std::condition_variable work_available_;
    std::deque<OperationReference> admitted_;
    std::atomic<int> admitted_count_{0};
    int workers_ = 0;
    int idle_workers_ = 0; /* sleeping, looking for work, or about to */
    int looking_workers_ = 0;
    Idleness idleness_; /* of the one that looks first; the others look for the shortest time */
};

} // namespace vgpu
