#include "block_run.h"

#include <algorithm>
#include <cstring>

namespace vgpu::ptx
{

namespace
{

constexpr int spins_per_turn = 64;
constexpr int idle_rounds_until_stalled = 8;
constexpr std::size_t shared_alignment = 1024;

/* A coroutine's frame starts with a pointer to the function that continues it (LLVM, "Coroutines in LLVM",
 * switched-resume lowering). C++ compilers rely on that too. */
void resume(char *frame)
{
    (*reinterpret_cast<void (**)(char *)>(frame))(frame);
}

} // namespace

BlockRun::BlockRun(Launch &launched, StackPool &stacks, std::uint64_t number) : launch(launched), stacks_(stacks)
{
    const LaunchShape &shape = launch.shape;
    thread_count_ = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
    warp_count_ = (thread_count_ + warp_size - 1) / warp_size;
    std::size_t shared_size = launch.code.shared_size + shape.dynamic_shared;
    if (shared_size > 0)
        shared_ = std::make_unique<char[]>(shared_size + shared_alignment);
    block.memory_first = launch.memory.first;
    block.memory_size = launch.memory.size;
    block.present = launch.memory.present;
    alignas(shared_alignment) static char nothing[1];
    std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(shared_ ? shared_.get() : nothing);
    block.shared = reinterpret_cast<char *>((begin + shared_alignment - 1) / shared_alignment * shared_alignment);
    block.shared_size = shared_size;
    block.parameters = launch.arguments.parameters;
    block.variables = launch.arguments.variables;
    block.stop = &launch.stop;
    std::memcpy(block.threads, shape.block, sizeof block.threads);
    std::memcpy(block.blocks, shape.grid, sizeof block.blocks);
    block.index[0] = static_cast<std::uint32_t>(number % shape.grid[0]);
    block.index[1] = static_cast<std::uint32_t>(number / shape.grid[0] % shape.grid[1]);
    block.index[2] = static_cast<std::uint32_t>(number / shape.grid[0] / shape.grid[1]);
    block.dynamic_shared = static_cast<std::uint32_t>(shape.dynamic_shared);
    block.spins = spins_per_turn;
    block.grid_id = launch.id;
    block.workspace = shape.cooperative ? reinterpret_cast<std::uint64_t>(launch.workspace.data()) : 0;
    block.run = this;
    if (launch.code.schedule == Schedule::loop)
        thread_count_ = warp_count_ = 1; /* a single thread runs all others */
    else
        barriers_ = std::make_unique<Barrier[]>(barrier_count);
    alive_ = thread_count_;
    /* Left uninitialized: most bytes are written before they are read, and clearing them would cost more than many
     * blocks' work. */
    if (launch.code.schedule != Schedule::regions) {
        fibers_.reset(new Fiber[static_cast<std::size_t>(thread_count_)]);
    } else {
        records_.reset(new WarpRecord[static_cast<std::size_t>(warp_count_)]);
    }
    warps_.reset(new Warp[static_cast<std::size_t>(warp_count_)]);
    for (int index = 0; index < warp_count_; ++index) {
        Warp &warp = warps_[static_cast<std::size_t>(index)];
        int lanes = std::min(thread_count_ - index * warp_size, warp_size);
        warp.ready = warp.yielded = warp.ahead = warp.meeting = warp.asking = warp.mask = 0;
        warp.masks_are_one = false;
        warp.alive = ~std::uint32_t{0} >> (warp_size - lanes);
        warp.turns_left = 0;
    }
}

BlockRun::~BlockRun()
{
    for (int thread = 0; thread < started_ && !coroutines_stack_; ++thread)
        if (fibers_[static_cast<std::size_t>(thread)].stack)
            stacks_.give_back(fibers_[static_cast<std::size_t>(thread)].stack);
    if (threads_)
        keep_threads();
    if (coroutines_stack_)
        stacks_.give_back(coroutines_stack_);
}

BlockRun::Outcome BlockRun::run()
{
    outcome_ = Outcome::finished;
    if (launch.code.schedule == Schedule::coroutines || launch.code.schedule == Schedule::regions) {
        if (!coroutines_stack_ && !start_coroutines())
            return Outcome::failed;
        vgpu_resume(&base_, coroutines_place_);
        return outcome_;
    }
    int next = choose();
    if (next < 0)
        return outcome_;
    if (next == started_ && !start(next))
        return Outcome::failed;
    current_ = next;
    vgpu_resume(&base_, fibers_[static_cast<std::size_t>(next)].place);
    return outcome_;
}

/* Makes `thread` the block's next one. Threads start in the order of their numbers. */
void BlockRun::begin(Thread &thread)
{
    thread.linear = static_cast<std::uint32_t>(started_++);
    for (int axis = 0; axis < 3; ++axis)
        thread.index[axis] = next_index_[axis];
    for (int axis = 0; axis < 2 && ++next_index_[axis] == block.threads[axis]; ++axis)
        next_index_[axis] = 0;
    if (next_index_[0] == 0 && next_index_[1] == 0)
        ++next_index_[2];
}

/* Gives the next thread a stack. Returns false if there is no memory for one. */
bool BlockRun::start(int thread)
{
    Fiber &fiber = fibers_[static_cast<std::size_t>(thread)];
    fiber.stack = stacks_.take();
    if (!fiber.stack) {
        launch.fail(Fault::stack, "no memory for the threads' stacks");
        return false;
    }
    begin(fiber.thread);
    fiber.thread.stack_first = reinterpret_cast<std::uint64_t>(fiber.stack);
    fiber.thread.stack_size = stacks_.size();
    fiber.place = prepare(fiber.stack, stacks_.size(), &BlockRun::fiber_main, this);
    return true;
}

/* Runs one thread after the other on the same stack, as long as none waits. */
void BlockRun::fiber_main(void *argument)
{
    BlockRun &self = *static_cast<BlockRun *>(argument);
    while (true) {
        Fiber &fiber = self.fibers_[static_cast<std::size_t>(self.current_)];
        self.launch.code.entry(&self.block, &fiber.thread);
        self.leave();
        int next = self.choose();
        if (next < 0 || next != self.started_)
            self.change_to(next); /* never returns: the stack is free now */
        Fiber &fresh = self.fibers_[static_cast<std::size_t>(next)];
        char *stack = fiber.stack;
        fiber.stack = nullptr;
        fresh.thread = fiber.thread;
        fresh.stack = stack;
        self.begin(fresh.thread);
        self.current_ = next;
    }
}

bool BlockRun::start_coroutines()
{
    coroutines_stack_ = stacks_.take();
    if (!coroutines_stack_) {
        launch.fail(Fault::stack, "no memory for the threads' stacks");
        return false;
    }
    bool regions = launch.code.schedule == Schedule::regions;
    if (regions)
        begin_regions();
    coroutines_place_ = prepare(coroutines_stack_, stack_size(launch.code, launch.shape),
                                regions ? &BlockRun::region_main : &BlockRun::coroutine_main, this);
    return true;
}

/* Runs each thread until it ends or suspends itself. */
void BlockRun::coroutine_main(void *argument)
{
    BlockRun &self = *static_cast<BlockRun *>(argument);
    while (true) {
        int next = self.choose();
        if (next < 0) {
            vgpu_resume(&self.coroutines_place_, self.base_);
            continue;
        }
        self.run_coroutine(next);
        self.run_warp(next / warp_size);
    }
}

void BlockRun::run_coroutine(int index)
{
    const Code &code = launch.code;
    current_ = index;
    Thread &thread = fibers_[static_cast<std::size_t>(index)].thread;
    if (index == started_) {
        begin(thread);
        thread.stack_first = reinterpret_cast<std::uint64_t>(coroutines_stack_);
        thread.stack_size = stacks_.size();
        thread.frame =
            coroutines_stack_ + stack_size(code, launch.shape) + static_cast<std::size_t>(index) * code.frame_stride();
        thread.over = 0;
        code.entry(&block, &thread);
    } else {
        resume(thread.frame);
    }
    if (thread.over)
        leave();
}

/* Runs the warp's threads as long as `take` would choose one of them, and in the same order. */
void BlockRun::run_warp(int index)
{
    Warp &warp = warps_[static_cast<std::size_t>(index)];
    int first = index * warp_size, behind = std::min(first + warp_size, thread_count_);
    while (started_ >= first && started_ < behind)
        run_coroutine(started_);
    while (warp.ready) {
        int lane = __builtin_ctz(warp.ready);
        warp.ready &= warp.ready - 1;
        run_coroutine(first + lane);
    }
}

void BlockRun::leave()
{
    Warp &warp = warps_[static_cast<std::size_t>(current_ / warp_size)];
    warp.alive &= ~lane_bit(current_ % warp_size);
    --alive_;
    if (warp.meeting)
        recheck(warp);
    release_reached_barriers();
}

/* Threads have ended, so all that remain may be waiting at a barrier already. */
void BlockRun::release_reached_barriers()
{
    for (std::uint32_t left = barriers_in_use_; left; left &= left - 1) {
        Barrier &barrier = barriers_[static_cast<std::size_t>(__builtin_ctz(left))];
        if (barrier.expected == 0 && static_cast<int>(barrier.arrived) >= alive_)
            release(barrier);
    }
}

/* Takes a thread of the warp that can run; -1 if there is none. */
int BlockRun::take(int index)
{
    Warp &warp = warps_[static_cast<std::size_t>(index)];
    if (started_ < thread_count_ && started_ / warp_size == index)
        return started_;
    if (!warp.ready && warp.asking && !warp.ahead)
        come_together(warp);
    if (!warp.ready)
        return -1;
    int thread = index * warp_size + __builtin_ctz(warp.ready);
    warp.ready &= warp.ready - 1;
    if (warp.ready && fibers_) /* fetch the next thread's stack for its turn */
        __builtin_prefetch(fibers_[static_cast<std::size_t>(index * warp_size + __builtin_ctz(warp.ready))].place);
    return thread;
}

/* Lets threads run that waited for others to catch up. Returns whether there are any. */
bool BlockRun::next_round()
{
    std::uint32_t any = 0;
    for (int index = 0; index < warp_count_; ++index) {
        Warp &warp = warps_[static_cast<std::size_t>(index)];
        any |= warp.ahead;
        warp.ready |= warp.ahead;
        warp.ahead = 0;
    }
    return any != 0;
}

/* Chooses the thread that runs next: `started_` for one that has not started, -1 for none. */
int BlockRun::choose()
{
    int first = current_ < 0 ? 0 : current_ / warp_size;
    while (true) {
        for (int index = first; index < warp_count_; ++index)
            if (int thread = take(index); thread >= 0)
                return thread;
        for (int index = 0; index < first; ++index)
            if (int thread = take(index); thread >= 0)
                return thread;
        if (next_round())
            continue;
        bool any = false;
        for (int index = 0; index < warp_count_; ++index) {
            Warp &warp = warps_[static_cast<std::size_t>(index)];
            any |= warp.yielded != 0;
            warp.ready |= warp.yielded;
            warp.yielded = 0;
        }
        if (any && ++idle_rounds_ % idle_rounds_until_stalled == 0) {
            outcome_ = Outcome::stalled;
            return -1;
        }
        if (!any && alive_ > 0 && !resolve_deadlock()) {
            launch.fail(Fault::deadlock, "all threads of a block wait, and none can come to what they wait for");
            outcome_ = Outcome::failed;
            return -1;
        }
        if (alive_ == 0)
            return -1;
    }
}

/* Changes from the current thread's stack to another thread's, or back to run() if `thread` is negative. */
void BlockRun::change_to(int thread)
{
    Fiber &from = fibers_[static_cast<std::size_t>(current_)];
    if (thread < 0) {
        vgpu_resume(&from.place, base_);
        return;
    }
    if (thread == started_ && !start(thread))
        abandon();
    if (thread == current_)
        return;
    current_ = thread;
    vgpu_resume(&from.place, fibers_[static_cast<std::size_t>(thread)].place);
}

/* Returns true if the thread has to suspend itself, as a coroutine does. A fiber has waited when this returns false. */
bool BlockRun::suspend()
{
    if (coroutines_stack_)
        return true;
    int self = current_;
    change_to(choose());
    current_ = self;
    return false;
}

void BlockRun::end_thread()
{
    leave();
    change_to(choose());
    __builtin_unreachable();
}

void BlockRun::abandon()
{
    outcome_ = Outcome::failed;
    void *unused;
    vgpu_resume(&unused, base_);
    __builtin_unreachable();
}

void BlockRun::fail(Fault fault, const std::string &detail)
{
    launch.fail(fault, detail);
    abandon();
}

bool BlockRun::take_turns()
{
    block.spins = spins_per_turn;
    if (launch.stop)
        abandon();
    warps_[static_cast<std::size_t>(current_ / warp_size)].yielded |= lane_bit(current_ % warp_size);
    return suspend();
}

/* The thread continues only once all other threads of the block have got as far as they can. */
bool BlockRun::let_others_catch_up()
{
    warps_[static_cast<std::size_t>(current_ / warp_size)].ahead |= lane_bit(current_ % warp_size);
    return suspend();
}

} // namespace vgpu::ptx
