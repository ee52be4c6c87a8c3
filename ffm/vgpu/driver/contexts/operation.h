/* One piece of work for the GPU: a kernel, a copy, a host function, or a mark in a stream. */
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "foundation/clock.h"

namespace vgpu
{

/* The part of a GPU that an operation occupies while it runs. Every device has its own. */
enum class Engine {
    none,           /* a mark: done as soon as its predecessors are */
    compute,        /* kernels, sets and copies within the device: share the multiprocessors */
    host_to_device, /* one copy at a time */
    device_to_host, /* one copy at a time */
    host_function,  /* a function of the program, on a thread of the driver */
    memory_wait,    /* waits for a value in memory */
};
constexpr int engine_count = 6;

/* Moving fewer bytes takes so little time that it is not worth estimating. */
constexpr std::uint64_t worth_estimating = 64 * 1024;

/* Learns how long the work itself takes on this CPU, so that it can end when the modelled time ends. Kept for each
 * power of two of the size, and quick to shrink, because bytes must not arrive early. */
class RunTimeEstimate
{
  public:
    Nanoseconds expected(std::uint64_t size) const
    {
        return learned_[size_class(size)].load(relaxed);
    }

    void learn(std::uint64_t size, Nanoseconds measured)
    {
        std::atomic<Nanoseconds> &learned = learned_[size_class(size)];
        Nanoseconds before = learned.load(relaxed);
        learned.store(before == 0 || measured < before ? measured : before + (measured - before) / 8, relaxed);
    }

  private:
    static constexpr auto relaxed = std::memory_order_relaxed;
    static int size_class(std::uint64_t size)
    {
        return 63 - __builtin_clzll(size | 1);
    }
    std::atomic<Nanoseconds> learned_[64] = {};
};

struct Operation;
using OperationReference = std::shared_ptr<Operation>;

struct Operation {
    Engine engine = Engine::none;
    int device = 0;
    Nanoseconds duration = 0;            /* modelled; longer once it starts with less room than it can use */
    double occupancy = 0;                /* compute only: share of the multiprocessors, 0 to 1 */
    double least_room = 0;               /* how much of that must be free for it to start */
    int priority = 0;                    /* lower is more urgent, like CUDA's stream priorities */
    std::function<void()> work;          /* moves the bytes, calls the kernel */
    RunTimeEstimate *estimate = nullptr; /* outlives the operation; may be absent */
    std::uint64_t size = 0;              /* for the estimate: threads or bytes */
    bool moves_bytes = false;            /* the work is no more than that, and waits for nothing */

    /* The scheduler's fields, guarded by its mutex, except `complete`, which anyone may read. */
    std::uint64_t sequence = 0;
    int unfinished_predecessors = 0;
    std::vector<OperationReference> successors;
    Nanoseconds submitted = 0;
    Nanoseconds ready = 0;        /* submitted, and every predecessor done */
    Nanoseconds earliest_end = 0; /* as known at submission */
    Nanoseconds start = 0;
    Nanoseconds due = 0; /* when its work is to begin */
    Nanoseconds end = 0; /* modelled, or later if the work itself took longer */
    std::atomic<bool> complete{false};
    std::atomic<int> core{-1}; /* of this machine, on which it runs; anyone may read it */
};

} // namespace vgpu
