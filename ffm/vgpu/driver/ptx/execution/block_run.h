/* Runs the threads of one block on one host thread, and lets them wait for each other, as regions, as
 * coroutines or as fibers.
 *
 * A thread runs until it ends or waits; then the next one that can run continues, of the same warp if possible. */
#pragma once

#include <memory>

#include "fiber.h"
#include "launch.h"
#include "shuffle.h"

namespace vgpu::ptx
{

constexpr int largest_block = 1024;
constexpr int barrier_count = 16;

/* What threads of a warp meet for, with the mask that says who takes part. */
enum class Meeting : std::uint8_t { barrier, shuffle, vote, match, reduce };

class BlockRun
{
  public:
    enum class Outcome { finished, stalled, failed };

    /* Memory for the block comes from the pools of the calling thread. */
    BlockRun(Launch &launch, StackPool &stacks, std::uint64_t number);
    BlockRun(const BlockRun &) = delete;
    BlockRun &operator=(const BlockRun &) = delete;
    ~BlockRun();

    /* Until all threads are over, or all only wait for what another block does (`stalled`: call it again). */
    Outcome run();

    /* For the functions that translated code calls, on a thread's stack. */
    [[noreturn]] void fail(Fault fault, const std::string &detail);
    [[noreturn]] void abandon();
    [[noreturn]] void end_thread();

    /* True tells a coroutine to suspend itself; a fiber has waited on return. The result is in Thread then. */
    bool take_turns();
    bool let_others_catch_up();
    bool wait_at_barrier(std::uint32_t barrier, std::uint32_t count, int how, bool holds);
    bool meet(Meeting meeting, int how, std::uint64_t value, std::uint32_t lane, std::uint32_t clamp,
              std::uint32_t mask);
    bool active_lanes(int site);

    Launch &launch;
    Block block;

  private:
    struct Fiber {
        Thread thread;
        void *place; /* to continue at */
        char *stack;
    };
    struct Warp {
        std::uint32_t ready, yielded, ahead, alive, meeting, asking;
        std::uint32_t mask; /* of the lane that came last to a meeting */
        bool masks_are_one; /* all lanes that meet have it */
        int turns_left;     /* by lanes that ask, to those that watch memory */
        struct Lane {
            std::uint64_t value;
            std::uint32_t mask, lane, clamp;
            int site;
            std::uint8_t how;
            Meeting meeting;
        } lanes[warp_size];
    };
    struct Barrier {
        std::uint32_t arrived, expected, holding;
        bool counts; /* those that wait ask for whom the predicate holds */
        std::uint32_t waiting[largest_block / warp_size];
    };

    static void fiber_main(void *run);
    static void coroutine_main(void *run);
    static void region_main(void *run);
    bool start(int thread);
    bool start_coroutines();
    void begin_regions();
    void begin_threads();
    void keep_threads();
    void run_regions(int warp);
    void settle(int warp, std::uint32_t lanes);
    void leave_together(Warp &warp);
    bool settle_together(int warp, const WaitPoint &point);
    bool settle_barrier(int warp, const WaitPoint &point);
    bool wait_at(const WaitPoint &point, const WarpRecord &record, int lane);
    void run_coroutine(int thread);
    void run_warp(int warp);
    bool suspend();
    void leave(); /* the current thread is over */
    void release_reached_barriers();
    bool next_round();
    int choose();
    void change_to(int thread);
    void begin(Thread &thread);
    std::uint64_t &result(const Warp &warp, int lane)
    {
        std::size_t index = static_cast<std::size_t>(&warp - warps_.get()), first = index * warp_size;
        if (records_)
            return records_[index].result[lane];
        return fibers_[first + static_cast<std::size_t>(lane)].thread.result;
    }
    int take(int warp);
    bool is_complete(const Warp &warp, std::uint32_t mask) const;
    void finish_meeting(Warp &warp, std::uint32_t group);
    template <Shuffle mode> void exchange(Warp &warp, std::uint32_t group);
    void release(Barrier &barrier);
    void recheck(Warp &warp);
    void come_together(Warp &warp);
    void answer(Warp &warp);
    bool resolve_deadlock();

    StackPool &stacks_;
    std::unique_ptr<char[]> shared_;
    int thread_count_, warp_count_;
    int started_ = 0, alive_ = 0, current_ = -1, idle_rounds_ = 0;
    std::uint32_t next_index_[3] = {0, 0, 0}; /* of the thread that begins next */
    std::uint32_t barriers_in_use_ = 0;       /* a bit for each where threads have arrived */
    Outcome outcome_ = Outcome::finished;
    void *base_ = nullptr; /* where run() continues */
    void *coroutines_place_ = nullptr;
    char *coroutines_stack_ = nullptr; /* on which all of them run; their frames lie behind it */
    std::unique_ptr<Fiber[]> fibers_;
    std::unique_ptr<Thread[]> threads_; /* of regions, instead of fibers, with a record for each warp */
    std::unique_ptr<WarpRecord[]> records_;
    std::unique_ptr<Warp[]> warps_;
    std::unique_ptr<Barrier[]> barriers_;
};

} // namespace vgpu::ptx
