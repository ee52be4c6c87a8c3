/* The wall clock that the virtual GPU runs on: CLOCK_MONOTONIC in nanoseconds. */
#pragma once

#include <cstdint>

namespace vgpu
{

using Nanoseconds = std::int64_t;

Nanoseconds now();

/* Sleeps until shortly before `moment`, then spins, so that on an idle core the return is at most a few microseconds
 * late. Returns at once if the moment has passed. */
void sleep_until(Nanoseconds moment);

/* Makes a driver call last at least as long as it does on the modelled machine: the destructor keeps the
 * calling thread busy until `duration` has passed since construction. */
class CallCost
{
  public:
    explicit CallCost(Nanoseconds duration) : end_(now() + duration) {}
    ~CallCost()
    {
        sleep_until(end_);
    }
    CallCost(const CallCost &) = delete;
    CallCost &operator=(const CallCost &) = delete;

  private:
    Nanoseconds end_;
};

} // namespace vgpu
