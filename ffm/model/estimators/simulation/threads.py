"""How much earlier threads are: because of those that started, joined or led them or used their processor, and because
of waits that were moved.
"""

from __future__ import annotations

from ffm.model.compiled import inner
from ffm.model.estimators.simulation.state import Columns, Gpu, State, Trace
from ffm.model.thread_relations_kernels import Family, Locks
from ffm.model.visits import process_of, row_at, thread_of

NEVER = -(1 << 62)
"""By how many nanoseconds something that is never over is earlier."""


@inner
def meet_threads(state: State, trace: Trace, family: Family, strict: bool, place: int, child: int) -> int:
    """Let a thread be as early as its parent, the threads it has joined and the one it follows allow.

    Returns the next of the joined threads.
    """
    row = row_at(trace.order, place)
    thread = thread_of(trace, row)
    early, ended = state.early, state.ended
    if family.forked[thread] == place and family.parent[thread] >= 0:
        early[thread] = early[family.parent[thread]]
    if child < len(family.children) and family.joined[family.children[child]] <= place:
        early[thread] = max(early[thread], joined_gain(state, family, strict, place, child))
    while child < len(family.children) and family.joined[family.children[child]] <= place:
        state.touched[thread] |= state.touched[family.children[child]]
        child += 1
    leader = family.follows[thread]
    if leader >= 0 and state.touched[leader] and not strict and ended[thread] > 0:
        room = trace.start[row] - ended[thread]  # it cannot have waited longer than it did nothing
        early[thread] = max(early[thread], min(early[leader], early[thread] + room))
    ended[thread] = trace.start[row] + trace.duration[row]
    return child


@inner
def run_in_turn(state: State, trace: Trace, row: int) -> None:
    """Let a thread that its last wait woke late go on as early as the thread that ran meanwhile. That one had their
    processor until then, and if it is sooner, it also gives it up sooner.

    The thread is at most as early as if it had woken as usual. The lateness of a removed wait is left to the next wait
    that covers it, which then shrinks. Until then, the thread is earlier than it will be, and others do not go on
    because of that.
    """
    thread = thread_of(trace, row)
    late, other = int(state.late.by[thread]), int(state.last[process_of(trace, row)])
    state.late.by[thread] = 0
    if late == 0:
        return
    early, alone = int(state.early[thread]), other < 0 or other == thread
    if state.late.removed[thread]:
        less = 0 if alone else min(max(int(state.late.begun[other]) - (early - late), 0), late)
        state.removed.over[thread] -= less
        state.late.left[thread] = max(late - less, int(state.late.left[thread]))
    elif not alone:
        state.early[thread] = max(early, min(early + late, int(state.late.begun[other])))


@inner
def take_up_processor(state: State, trace: Trace, times: Gpu, row: int) -> None:
    """Let a thread that had no processor since its last call, or within a row's call, go on as early as the one that
    ran meanwhile. What it waited for before that, such as a lock, does not hold it up any longer.

    A call in which others ran is visited when it acts, after the calls that these made meanwhile.
    """
    thread, other = thread_of(trace, row), int(state.last[process_of(trace, row)])
    lacked = int(state.late.after[thread])
    state.late.after[thread] = 0
    if len(times.starved) > 0:
        lacked += int(times.starved[row])
    if lacked > 0 and other >= 0 and other != thread:
        early = int(state.early[thread])
        state.early[thread] = max(early, min(early + lacked, int(state.late.begun[other])))


@inner
def starve(state: State, trace: Trace, times: Gpu, row: int) -> None:
    """Remember for how long a thread had no processor after a row's call, for `take_up_processor`. If the call's wait
    was removed, only how late it woke the thread counts.
    """
    if len(times.starved_after) == 0 or times.starved_after[row] == 0:
        return
    thread = thread_of(trace, row)
    if state.late.by[thread] == 0 or not state.late.removed[thread]:
        state.late.after[thread] = times.starved_after[row]


@inner
def go_on(state: State, trace: Trace, locks: Locks, place: int, wait: int, less: int) -> int:
    """Let a thread go on, before a row at a place, no earlier than the threads allow that it waited for there.

    Its CPU work before the row takes `less` nanoseconds less. Returns the next of the waits, after `wait`.
    """
    thread = thread_of(trace, row_at(trace.order, place))
    first = wait
    while wait < len(locks.goes_on) and locks.goes_on[wait] <= place:
        wait += 1
    after = int(less * locks.work_after[wait - 1]) if wait > first else 0
    state.early[thread] += less - after
    for number in range(first, wait):
        other = thread_of(trace, row_at(trace.order, locks.by[number]))
        state.touched[thread] |= state.touched[other]
        state.early[thread] = min(state.early[thread] + locks.waited[number], state.let_go[number])
    state.early[thread] += after
    return wait


@inner
def let_go_on(state: State, trace: Trace, locks: Locks, less: Columns, place: int, free: int) -> int:
    """Note by how much earlier a thread lets others go on after its row at a place; its CPU work before each row takes
    `less` nanoseconds less, if that is not empty.

    Returns the next of the waits in the order of `Locks.by`, after `free`.
    """
    while free < len(locks.let_go) and locks.by[locks.let_go[free]] <= place:
        number = locks.let_go[free]
        following = locks.following[number]
        sooner = state.early[thread_of(trace, row_at(trace.order, place))]
        if len(less) > 0 and following >= 0:
            sooner += int(less[following] * locks.work_before[number])
        state.let_go[number] = sooner
        free += 1
    return free


@inner
def joined_gain(state: State, family: Family, strict: bool, place: int, child: int) -> int:
    """Return by how much the threads joined at a place, `child` and those after it, end earlier; negative if later.

    Threads that run the same code are over when the last of them is.
    """
    early, ended = state.early, state.ended
    least = int(early[family.children[child]])
    gain = NEVER
    alike = -1
    last = 0
    sooner = 0
    while child < len(family.children) and family.joined[family.children[child]] <= place:
        other = family.children[child]
        if child == 0 or family.joined[family.children[child - 1]] < place:
            alike = -1
        if family.alike[other] != alike:
            alike = int(family.alike[other])
            last = int(ended[other])
            sooner = int(ended[other] - early[other])
        last = max(last, int(ended[other]))
        sooner = max(sooner, int(ended[other] - early[other]))
        least = min(least, int(early[other]))
        child += 1
        following = family.children[child] if child < len(family.children) else -1
        if following < 0 or family.joined[following] > place or family.alike[following] != alike:
            gain = max(gain, last - sooner)
    return least if strict else gain


@inner
def begin(state: State, trace: Trace, times: Gpu, row: int) -> int:
    """Let a thread begin a call; return when."""
    if trace.related:
        take_up_processor(state, trace, times, row)
    thread, shift = thread_of(trace, row), shift_of(state, trace, row)
    if trace.related:
        state.late.begun[thread] = shift - state.late.left[thread]
        state.last[process_of(trace, row)] = thread
    return int(trace.start[row] - shift)


@inner
def shift_of(state: State, trace: Trace, row: int) -> int:
    """Return by how much a call begins earlier, after what the thread waits for since waits were moved."""
    thread = thread_of(trace, row)
    shift, until = int(state.early[thread]), int(state.moved_until[thread])
    if until >= 0 and trace.start[row] >= until:
        shift = min(shift, until - int(state.moved_for[thread]))
        state.moved_until[thread] = -1
    return shift


@inner
def move_wait(state: State, trace: Trace, row: int, target: int, latency: int) -> None:
    """Let a thread wait at the first use of what it waited for."""
    thread = thread_of(trace, row)
    until = trace.start[row] + trace.duration[row] + trace.first_use[row]
    if state.moved_until[thread] < 0 or until < state.moved_until[thread]:
        state.moved_until[thread] = until
    state.moved_for[thread] = max(state.moved_for[thread], target + max(latency, 0))


@inner
def wait_at_the_end(state: State) -> None:
    """Let the threads wait at the end for what moved waits have left to them."""
    for thread in range(len(state.early)):
        until = state.moved_until[thread]
        if until >= 0:
            state.early[thread] = min(state.early[thread], until - state.moved_for[thread])
