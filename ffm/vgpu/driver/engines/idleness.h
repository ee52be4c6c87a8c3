/* For how long a thread of the GPU that has nothing to do looks for work before it sleeps.
 *
 * To wake a thread costs the program that launches tens of microseconds on a virtual machine, and a GPU has no thread
 * to be woken. So the thread looks for work for twice as long as the program lately took to enqueue more, if that was
 * not longer than the longest look. On the program's own core it would only keep the program from enqueuing. */
#pragma once

#include <algorithm>
#include <atomic>
#include <sched.h>

#include "foundation/clock.h"

namespace vgpu
{

class Idleness
{
  public:
    /* Whether a thread that has been idle since `since` goes on to look. */
    bool looks(Nanoseconds since) const
    {
        return now() < since + std::max(look_, shortest) &&
               sched_getcpu() != submitter_core_.load(std::memory_order_relaxed);
    }

    /* More was enqueued after so long. */
    void learn(Nanoseconds idle)
    {
        const Nanoseconds wanted = 2 * idle <= longest ? 2 * idle : 0;
        look_ = std::max(wanted, look_ - look_ / 8);
    }

    /* The calling thread enqueues work. */
    static void enqueue()
    {
        const int core = sched_getcpu();
        if (submitter_core_.load(std::memory_order_relaxed) != core)
            submitter_core_.store(core, std::memory_order_relaxed);
    }

  private:
    static constexpr Nanoseconds shortest = 20'000;
    static constexpr Nanoseconds longest = 1'000'000;

    static inline std::atomic<int> submitter_core_{-1}; /* of this machine, where work was enqueued last */

    Nanoseconds look_ = 0;
};

} // namespace vgpu
