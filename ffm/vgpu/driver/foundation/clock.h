/* The wall clock that the virtual GPU runs on: CLOCK_MONOTONIC in nanoseconds. */
#pragma once

#include <cstdint>

namespace vgpu
{

using Nanoseconds = std::int64_t;

/* On a virtual machine, a sleeping thread may wake up this late. The last part of a sleep is spent spinning instead. */
constexpr Nanoseconds wake_up_margin = 40'000;

/* A shorter time is spent spinning altogether. */
constexpr Nanoseconds worth_sleeping = wake_up_margin + wake_up_margin / 2;

Nanoseconds now();

/* Sleeps until shortly before `moment`, then spins, so that on an idle core the return is at most a few microseconds
 * late. Returns at once if the moment has passed. */
void sleep_until(Nanoseconds moment);

/* Makes a driver call last at least as long as it does on the modelled machine: the destructor keeps the
 * calling thread busy until `duration` has passed since construction. What the call waits for comes on top of that, if
 * it calls `spend` before it waits. */
class CallCost
{
  public:
    explicit CallCost(Nanoseconds duration) : end_(now() + duration), outer_(work_done_)
    {
        work_done_ = end_ > outer_ ? end_ : outer_;
    }
    ~CallCost()
    {
        sleep_until(end_);
        work_done_ = outer_;
    }

    /* When the work of the calling thread's current driver calls is done, without waiting; may have passed. */
    static Nanoseconds work_done()
    {
        return work_done_;
    }

    /* Does the rest of that work now. */
    static void spend()
    {
        sleep_until(work_done_);
    }

    CallCost(const CallCost &) = delete;
    CallCost &operator=(const CallCost &) = delete;

  private:
    static inline thread_local Nanoseconds work_done_ = 0;

    Nanoseconds end_;
    Nanoseconds outer_;
};

} // namespace vgpu
