/* How the threads of a block wait for each other, at barriers and in meetings of a warp. */
#include "block_run.h"

#include <algorithm>
#include <climits>

namespace vgpu::ptx
{

namespace
{

constexpr int turns_of_patience = 4;

/* The translation uses the same numbers: add, min, max, and, or, xor, then signed min and max. */
std::uint32_t combine(int how, std::uint32_t a, std::uint32_t b)
{
    switch (how) {
    case 0:
        return a + b;
    case 1:
        return a < b ? a : b;
    case 2:
        return a > b ? a : b;
    case 3:
        return a & b;
    case 4:
        return a | b;
    case 5:
        return a ^ b;
    case 6:
        return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b) ? a : b;
    default:
        return static_cast<std::int32_t>(a) > static_cast<std::int32_t>(b) ? a : b;
    }
}

template <typename Action> void for_each_lane(std::uint32_t group, Action action)
{
    for (; group; group &= group - 1)
        action(__builtin_ctz(group));
}

} // namespace

/* `how` is 0 to wait, 1 to only arrive, and 2 to 4 to wait and ask for how many threads the predicate holds: the
 * number, whether for all, whether for any. A count of 0 means all threads that have not ended. */
bool BlockRun::wait_at_barrier(std::uint32_t number, std::uint32_t count, int how, bool holds)
{
    number %= barrier_count;
    Barrier &barrier = barriers_[number];
    barriers_in_use_ |= std::uint32_t{1} << number;
    barrier.expected = count;
    barrier.counts |= how > 1;
    ++barrier.arrived;
    barrier.holding += holds;
    Warp &warp = warps_[static_cast<std::size_t>(current_ / warp_size)];
    if (how > 1)
        warp.lanes[current_ % warp_size].how = static_cast<std::uint8_t>(how);
    if (how != 1)
        barrier.waiting[current_ / warp_size] |= lane_bit(current_ % warp_size);
    std::uint32_t arrived = barrier.arrived;
    if (arrived >= (count ? count : static_cast<std::uint32_t>(alive_))) {
        release(barrier);
        warp.ready &= ~lane_bit(current_ % warp_size);
        return false;
    }
    return how != 1 && suspend();
}

void BlockRun::release(Barrier &barrier)
{
    for (int index = 0; index < warp_count_; ++index) {
        Warp &warp = warps_[static_cast<std::size_t>(index)];
        warp.ready |= barrier.waiting[index];
        if (barrier.counts)
            for_each_lane(barrier.waiting[index], [&](int lane) {
                int how = warp.lanes[lane].how; /* 0 for a plain wait, whose result nobody reads */
                result(warp, lane) = how == 3   ? barrier.holding == barrier.arrived
                                     : how == 4 ? barrier.holding > 0
                                                : barrier.holding;
            });
        barrier.waiting[index] = 0;
    }
    barrier.arrived = barrier.expected = barrier.holding = 0;
    barrier.counts = false;
    barriers_in_use_ &= ~(std::uint32_t{1} << (&barrier - barriers_.get()));
    idle_rounds_ = 0;
}

bool BlockRun::is_complete(const Warp &warp, std::uint32_t mask) const
{
    std::uint32_t group = mask & warp.alive;
    if ((warp.meeting & group) != group)
        return false;
    if (warp.masks_are_one)
        return true;
    bool same = true;
    for_each_lane(group, [&](int lane) { same &= warp.lanes[lane].mask == mask; });
    return same;
}

bool BlockRun::meet(Meeting meeting, int how, std::uint64_t value, std::uint32_t lane, std::uint32_t clamp,
                    std::uint32_t mask)
{
    Warp &warp = warps_[static_cast<std::size_t>(current_ / warp_size)];
    int self = current_ % warp_size;
    mask |= lane_bit(self);
    Warp::Lane &own = warp.lanes[self];
    own.value = value;
    own.mask = mask;
    own.lane = lane;
    own.clamp = clamp;
    own.how = static_cast<std::uint8_t>(how);
    own.meeting = meeting;
    warp.masks_are_one = !warp.meeting || (warp.masks_are_one && mask == warp.mask);
    warp.mask = mask;
    warp.meeting |= lane_bit(self);
    std::uint32_t group = mask & warp.alive;
    if (warp.masks_are_one ? (warp.meeting & group) == group : is_complete(warp, mask)) {
        finish_meeting(warp, group);
        warp.ready &= ~lane_bit(self);
        return false;
    }
    return suspend();
}

/* A lane outside the group has no defined value. A lane that asks for its value gets its own instead. */
template <Shuffle mode> void BlockRun::exchange(Warp &warp, std::uint32_t group)
{
    for_each_lane(group, [&](int lane) {
        const Warp::Lane &own = warp.lanes[lane];
        int source;
        bool inside = source_lane<mode>(lane, own.lane, own.clamp, source);
        source = group & lane_bit(source) ? source : lane;
        result(warp, lane) =
            (inside ? std::uint64_t{1} << 32 : 0) | static_cast<std::uint32_t>(warp.lanes[source].value);
    });
}

/* Gives each lane of the group its result, and lets it continue. */
void BlockRun::finish_meeting(Warp &warp, std::uint32_t group)
{
    const Warp::Lane &first = warp.lanes[__builtin_ctz(group)];
    int how = first.how;
    switch (first.meeting) {
    case Meeting::barrier:
        break;
    case Meeting::shuffle:
        switch (static_cast<Shuffle>(how)) {
        case Shuffle::up:
            exchange<Shuffle::up>(warp, group);
            break;
        case Shuffle::down:
            exchange<Shuffle::down>(warp, group);
            break;
        case Shuffle::butterfly:
            exchange<Shuffle::butterfly>(warp, group);
            break;
        case Shuffle::index:
            exchange<Shuffle::index>(warp, group);
            break;
        }
        break;
    case Meeting::vote: {
        std::uint32_t holding = 0;
        for_each_lane(group, [&](int lane) { holding |= warp.lanes[lane].value ? lane_bit(lane) : 0; });
        bool all = holding == group, any = holding != 0;
        std::uint32_t outcome = how == 0 ? all : how == 1 ? any : how == 2 ? all || !any : holding;
        for_each_lane(group, [&](int lane) { result(warp, lane) = outcome; });
        break;
    }
    case Meeting::reduce: {
        std::uint32_t reduced = static_cast<std::uint32_t>(first.value);
        for_each_lane(group & (group - 1), [&](int lane) {
            reduced = combine(how, reduced, static_cast<std::uint32_t>(warp.lanes[lane].value));
        });
        for_each_lane(group, [&](int lane) { result(warp, lane) = reduced; });
        break;
    }
    case Meeting::match:
        for_each_lane(group, [&](int lane) {
            std::uint64_t value = warp.lanes[lane].value;
            std::uint32_t same = 0;
            for_each_lane(group, [&](int other) { same |= warp.lanes[other].value == value ? lane_bit(other) : 0; });
            result(warp, lane) = how == 0 ? same : same == group ? std::uint64_t{1} << 32 | group : 0;
        });
        break;
    }
    warp.meeting &= ~group;
    warp.ready |= group;
    idle_rounds_ = 0;
}

/* A thread of the warp has ended. Others may have been waiting only for it. */
void BlockRun::recheck(Warp &warp)
{
    for (std::uint32_t left = warp.meeting; left;) {
        std::uint32_t mask = warp.lanes[__builtin_ctz(left)].mask;
        std::uint32_t group = mask & warp.alive;
        if (is_complete(warp, mask))
            finish_meeting(warp, group);
        left &= ~(group | (left & -left));
    }
}

/* Used for activemask, and for exchanges in lockstep. The lanes that ask at the same place are together once no
 * other lane of the warp can run. */
bool BlockRun::active_lanes(int site)
{
    Warp &warp = warps_[static_cast<std::size_t>(current_ / warp_size)];
    int self = current_ % warp_size;
    warp.lanes[self].site = site;
    warp.asking |= lane_bit(self);
    return suspend();
}

/* Lanes that only gave others a turn may still arrive, so they run a few times more. After that, they may be waiting
 * for the lanes that wait here. */
void BlockRun::come_together(Warp &warp)
{
    if (warp.yielded && warp.turns_left < turns_of_patience) {
        ++warp.turns_left;
        warp.ready = warp.yielded;
        warp.yielded = 0;
        return;
    }
    warp.turns_left = 0;
    answer(warp);
}

void BlockRun::answer(Warp &warp)
{
    std::uint32_t group = 0;
    int site = INT_MAX; /* the earliest in the program's text: lanes go on from there to where others wait */
    for_each_lane(warp.asking, [&](int lane) {
        int own = warp.lanes[lane].site;
        group = own < site ? lane_bit(lane) : own == site ? group | lane_bit(lane) : group;
        site = std::min(site, own);
    });
    for_each_lane(group, [&](int lane) { result(warp, lane) = group; });
    warp.asking &= ~group;
    warp.ready |= group;
}

/* No thread can run. A meeting then proceeds with the lanes that came. A barrier with a count proceeds if all
 * missing threads have ended or never existed. GPUs do both. */
bool BlockRun::resolve_deadlock()
{
    bool resolved = false;
    for (int index = 0; index < warp_count_; ++index) {
        Warp &warp = warps_[static_cast<std::size_t>(index)];
        while (warp.meeting) {
            std::uint32_t mask = warp.lanes[__builtin_ctz(warp.meeting)].mask, group = 0;
            for_each_lane(warp.meeting, [&](int lane) { group |= warp.lanes[lane].mask == mask ? lane_bit(lane) : 0; });
            finish_meeting(warp, group);
            resolved = true;
        }
    }
    if (resolved)
        return true;
    for (int number = 0; number < barrier_count; ++number) {
        Barrier &barrier = barriers_[static_cast<std::size_t>(number)];
        std::uint32_t absent = 0;
        for (int index = 0; index < warp_count_; ++index)
            if (barrier.waiting[index])
                absent +=
                    static_cast<std::uint32_t>(__builtin_popcount(~warps_[static_cast<std::size_t>(index)].alive));
        if (barrier.arrived > 0 && barrier.arrived + absent >= barrier.expected && absent > 0) {
            release(barrier);
            resolved = true;
        }
    }
    return resolved;
}

} // namespace vgpu::ptx
