"""Which threads belong together, against a comparison of all threads with all others."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from ffm.model.device import Action, DeviceWork
from ffm.model.estimators.replay import Replay
from ffm.model.thread_leaders import LEADERS_TRIED
from ffm.model.thread_relations import find_family
from ffm.model.timeline import Kind, Timeline
from tests.model.given_times import given_gpu_times
from tests.model.simulator import Call, Member, families, traced_together

MS = 1_000_000


def parent_of(timeline: Timeline, work: DeviceWork, thread: int) -> int:
    """Return the first other thread of the process with a gap that encloses all of the thread's calls; else -1."""
    end = timeline.start + timeline.duration
    mine = timeline.thread == thread
    born, died = timeline.start[mine].min(), end[mine].max()
    for row in range(len(timeline) - 1):
        other = int(timeline.thread[row])
        if other == thread or timeline.thread[row + 1] != other:
            continue
        same = work.process_of_thread[other] == work.process_of_thread[thread]
        opens = end[row] <= born and timeline.start[row] < born
        if same and opens and died <= timeline.start[row + 1]:
            return other
    return -1


@given(families())
def test_the_first_thread_whose_gap_encloses_another_started_it(members: list[Member]) -> None:
    timeline, work, gpu = traced_together(members)
    family = find_family(timeline, work, given_gpu_times(timeline, work, gpu).order)
    assert family.parent.tolist() == [parent_of(timeline, work, thread) for thread in range(len(members))]


def test_of_many_threads_each_follows_the_one_that_it_waits_for() -> None:
    """More pairs than are tried: in each, one waits for its kernels, and the other goes on when that is over."""
    tenth, pairs = MS // 10, 2 * LEADERS_TRIED
    pauses = np.random.default_rng(1).integers(5, 40, (pairs, 20)) * tenth
    members = []
    for pauses_of_pair in pauses.tolist():
        leader, follower = [], []
        for pause in pauses_of_pair:
            leader.append(Call(Action.ENQUEUE, Kind.LAUNCH, gpu=4 * tenth, stream=1))
            leader.append(Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, gap=pause, stream=1))
            follower.append(Call(Action.NONE, Kind.OTHER, own=tenth, gap=pause + 3 * tenth))
        members.append(Member(0, 0, leader))
        members.append(Member(0, 4 * tenth + 1000, follower))
    timeline, work, gpu = traced_together(members)
    work = _with_a_stream_for_each_thread(timeline, work)
    follows = Replay(timeline, work, given_gpu_times(timeline, work, gpu)).threads.follows
    assert follows[1::2].tolist() == list(range(0, 2 * pairs, 2))


def _with_a_stream_for_each_thread(timeline: Timeline, work: DeviceWork) -> DeviceWork:
    object.__setattr__(work, "stream", np.where(work.stream >= 0, timeline.thread, -1).astype(np.int32))
    object.__setattr__(work, "stream_process", np.zeros(len(work.process_of_thread), np.int32))
    object.__setattr__(work, "legacy", np.full(1, -1, np.int32))
    object.__setattr__(work, "independent", None)
    return work
