/* Runs kernels that consist of regions (`translation/schedules.h`). The lanes of a warp run together. When all that
 * are alive have reached the same wait, it is settled for all of them at once. */
#include "block_run.h"

namespace vgpu::ptx
{

namespace
{

std::uint32_t argument(const WaitPoint &point, const WarpRecord &record, int index, int lane)
{
    const WaitArgument &given = point.arguments[index];
    return static_cast<std::uint32_t>(given.known ? given.value : record.arguments[index][lane]);
}

/* An exchange among all lanes of a warp that name the same lane or distance, as in a sum over a warp. */
template <Shuffle mode> void exchange_alike(const WaitPoint &point, WarpRecord &record)
{
    const auto b = static_cast<std::uint32_t>(point.arguments[2].value),
               c = static_cast<std::uint32_t>(point.arguments[3].value);
    std::uint32_t values[warp_size];
    for (int lane = 0; lane < warp_size; ++lane)
        values[lane] = argument(point, record, 1, lane);
    for (int lane = 0; lane < warp_size; ++lane) {
        int source;
        bool inside = source_lane<mode>(lane, b, c, source);
        record.result[lane] = static_cast<std::uint64_t>(inside) << 32 | values[source];
    }
}

/* As BlockRun::exchange, for all lanes of a warp that are alive. */
template <Shuffle mode> void exchange(const WaitPoint &point, WarpRecord &record, std::uint32_t alive)
{
    const WaitArgument *given = point.arguments;
    if (given[2].known && given[3].known && given[4].known && (given[4].value & alive & UINT32_MAX) == UINT32_MAX)
        return exchange_alike<mode>(point, record);
    std::uint32_t values[warp_size];
    for (int lane = 0; lane < warp_size; ++lane)
        values[lane] = argument(point, record, 1, lane);
    for (int lane = 0; lane < warp_size; ++lane) {
        int source;
        bool inside =
            source_lane<mode>(lane, argument(point, record, 2, lane), argument(point, record, 3, lane), source);
        source = alive & argument(point, record, 4, lane) & lane_bit(source) ? source : lane;
        record.result[lane] = static_cast<std::uint64_t>(inside) << 32 | values[source];
    }
}

void shuffle(const WaitPoint &point, WarpRecord &record, std::uint32_t alive)
{
    switch (static_cast<Shuffle>(point.arguments[0].value)) {
    case Shuffle::up:
        return exchange<Shuffle::up>(point, record, alive);
    case Shuffle::down:
        return exchange<Shuffle::down>(point, record, alive);
    case Shuffle::butterfly:
        return exchange<Shuffle::butterfly>(point, record, alive);
    case Shuffle::index:
        return exchange<Shuffle::index>(point, record, alive);
    }
}

/* Each lane asks the lanes in its mask. Whether the masks agree, or contain the asking lane, is not checked. Neither
 * do GPUs check it, since their lanes run together. */
void vote(const WaitPoint &point, WarpRecord &record, std::uint32_t alive)
{
    std::uint32_t holding = 0;
    for (int lane = 0; lane < warp_size; ++lane)
        holding |= argument(point, record, 1, lane) ? lane_bit(lane) : 0;
    for (int lane = 0; lane < warp_size; ++lane) {
        std::uint32_t named = alive & argument(point, record, 2, lane), found = holding & named;
        bool all = found == named, any = found != 0;
        std::uint64_t how = point.arguments[0].value;
        record.result[lane] = how == 0 ? all : how == 1 ? any : how == 2 ? all || !any : found;
    }
}

/* Whether all lanes, even those that take no part, continue at the same place. */
bool all_together(const WarpRecord &record)
{
    std::uint64_t pair = record.next[0], differ = 0;
    pair |= pair << 32;
    for (int lane = 0; lane < warp_size; lane += 2) {
        std::uint64_t next;
        __builtin_memcpy(&next, &record.next[lane], sizeof next);
        differ |= next ^ pair;
    }
    return differ == 0;
}

/* The lanes that continue at the same place as the first of them. */
std::uint32_t lanes_together(const WarpRecord &record, std::uint32_t lanes)
{
    if (all_together(record))
        return lanes;
    std::uint32_t point = record.next[__builtin_ctz(lanes)], together = 0;
    for (int lane = 0; lane < warp_size; ++lane)
        together |= record.next[lane] == point ? lane_bit(lane) : 0;
    return together & lanes;
}

/* The threads of the last block that this host thread ran. The launch's next block has the same ones, on the same
 * stack, so they are reused. */
struct Spare {
    std::uint32_t launch = 0;
    const char *stack = nullptr;
    std::unique_ptr<Thread[]> threads;
};
thread_local Spare spare;

} // namespace

void BlockRun::keep_threads()
{
    spare.launch = launch.id;
    spare.stack = coroutines_stack_;
    spare.threads = std::move(threads_);
}

void BlockRun::begin_threads()
{
    if (spare.launch == launch.id && spare.stack == coroutines_stack_ && spare.threads) {
        threads_ = std::move(spare.threads);
        started_ = thread_count_;
        return;
    }
    threads_.reset(new Thread[static_cast<std::size_t>(thread_count_)]);
    while (started_ < thread_count_) {
        Thread &thread = threads_[static_cast<std::size_t>(started_)];
        begin(thread);
        thread.stack_first = reinterpret_cast<std::uint64_t>(coroutines_stack_);
        thread.stack_size = stacks_.size();
    }
}

void BlockRun::begin_regions()
{
    begin_threads();
    for (int index = 0; index < warp_count_; ++index) {
        Warp &warp = warps_[static_cast<std::size_t>(index)];
        warp.ready = warp.alive;
        for (std::uint32_t &next : records_[static_cast<std::size_t>(index)].next)
            next = 0;
    }
}

void BlockRun::region_main(void *argument)
{
    BlockRun &self = *static_cast<BlockRun *>(argument);
    while (true) {
        int thread = self.choose();
        if (thread < 0) {
            vgpu_resume(&self.coroutines_place_, self.base_);
            continue;
        }
        int warp = thread / warp_size;
        self.warps_[static_cast<std::size_t>(warp)].ready |= lane_bit(thread % warp_size);
        self.run_regions(warp);
    }
}

/* Runs the warp as long as any of its lanes can run. */
void BlockRun::run_regions(int index)
{
    Warp &warp = warps_[static_cast<std::size_t>(index)];
    WarpRecord &record = records_[static_cast<std::size_t>(index)];
    const Code &code = launch.code;
    std::size_t first = static_cast<std::size_t>(index) * warp_size;
    char *frame =
        coroutines_stack_ + stack_size(code, launch.shape) + static_cast<std::size_t>(index) * code.frame_stride();
    current_ = static_cast<int>(first);
    while (warp.ready) {
        std::uint32_t lanes = lanes_together(record, warp.ready), point = record.next[__builtin_ctz(lanes)];
        warp.ready &= ~lanes;
        code.regions(&block, &threads_[first], &record, frame, point, lanes);
        settle(index, lanes);
    }
}

/* Handles the wait that the lanes have just reached. */
void BlockRun::settle(int index, std::uint32_t lanes)
{
    Warp &warp = warps_[static_cast<std::size_t>(index)];
    const WarpRecord &record = records_[static_cast<std::size_t>(index)];
    std::uint32_t point = record.next[__builtin_ctz(lanes)];
    bool together = lanes == warp.alive && lanes_together(record, lanes) == lanes;
    if (together && point == point_over)
        return leave_together(warp);
    if (together && settle_together(index, launch.code.points[point]))
        return;
    for (std::uint32_t left = lanes; left; left &= left - 1) {
        int lane = __builtin_ctz(left);
        current_ = index * warp_size + lane;
        if (record.next[lane] == point_over)
            leave();
        else if (!wait_at(launch.code.points[record.next[lane]], record, lane))
            warp.ready |= lane_bit(lane);
    }
}

/* The warp's last lanes end. */
void BlockRun::leave_together(Warp &warp)
{
    alive_ -= __builtin_popcount(warp.alive);
    warp.alive = 0;
    release_reached_barriers();
}

/* Settles a wait where all lanes that are alive have arrived. Returns false if each lane must be handled by itself. */
bool BlockRun::settle_together(int index, const WaitPoint &point)
{
    Warp &warp = warps_[static_cast<std::size_t>(index)];
    WarpRecord &record = records_[static_cast<std::size_t>(index)];
    switch (point.wait) {
    case Wait::barrier:
        return settle_barrier(index, point);
    case Wait::stride:
    case Wait::warp_barrier:
        break;
    case Wait::active:
        for (std::uint64_t &result : record.result)
            result = warp.alive;
        break;
    case Wait::shuffle:
        shuffle(point, record, warp.alive);
        break;
    case Wait::vote:
        vote(point, record, warp.alive);
        break;
    default:
        return false;
    }
    warp.ready |= warp.alive;
    idle_rounds_ = 0;
    return true;
}

/* Settles a barrier for the whole block whose result nobody asks for. */
bool BlockRun::settle_barrier(int index, const WaitPoint &point)
{
    for (int known : {0, 1, 2})
        if (!point.arguments[known].known)
            return false;
    if (point.arguments[1].value != 0 || point.arguments[2].value != 0)
        return false;
    Warp &warp = warps_[static_cast<std::size_t>(index)];
    std::size_t number = point.arguments[0].value % barrier_count;
    Barrier &barrier = barriers_[number];
    barriers_in_use_ |= std::uint32_t{1} << number;
    barrier.expected = 0;
    barrier.arrived += static_cast<std::uint32_t>(__builtin_popcount(warp.alive));
    barrier.waiting[index] |= warp.alive;
    if (barrier.arrived >= static_cast<std::uint32_t>(alive_))
        release(barrier);
    return true;
}

/* Whether the current thread has to wait. */
bool BlockRun::wait_at(const WaitPoint &point, const WarpRecord &record, int lane)
{
    auto given = [&](int index) { return argument(point, record, index, lane); };
    int how = static_cast<int>(given(0));
    switch (point.wait) {
    case Wait::stride:
        return false;
    case Wait::turn:
        return take_turns();
    case Wait::barrier:
        return wait_at_barrier(given(0), given(1), static_cast<int>(given(2)), given(3) != 0);
    case Wait::warp_barrier:
        return meet(Meeting::barrier, 0, 0, 0, 0, given(0));
    case Wait::shuffle:
        return meet(Meeting::shuffle, how, given(1), given(2), given(3), given(4));
    case Wait::vote:
        return meet(Meeting::vote, how, given(1), 0, 0, given(2));
    case Wait::match: {
        const WaitArgument &value = point.arguments[1];
        return meet(Meeting::match, how, value.known ? value.value : record.arguments[1][lane], 0, 0, given(2));
    }
    case Wait::reduce:
        return meet(Meeting::reduce, how, given(1), 0, 0, given(2));
    case Wait::active:
        return active_lanes(how);
    }
    return false;
}

} // namespace vgpu::ptx
