"""The run after all fixes, against the fixed program simulated call by call."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from ffm.model.device import Action
from ffm.model.estimators.replay import Replay
from ffm.model.timeline import Kind
from ffm.model.waiting.fixed import Fixed
from ffm.model.waiting.graph import build_graph
from ffm.model.waiting.path import Part, Path
from tests.model.given_times import given_gpu_times
from tests.model.simulator import SYNC, Call, live, programs, traced
from tests.model.whole_path import find_path

MS = 1_000_000


def after_fixes(calls: list[Call]) -> tuple[Fixed, Path]:
    timeline, work, gpu = traced(calls)
    fixed = Replay(timeline, work, given_gpu_times(timeline, work, gpu)).fixed()
    graph = build_graph(fixed.timeline, fixed.work, fixed.inference, fixed.times)
    return fixed, find_path(fixed.timeline, fixed.work, graph)


@given(programs(streams=4))
def test_rows_start_and_wait_as_in_the_fixed_program(calls: list[Call]) -> None:
    fixed, path = after_fixes(calls)
    lived = live(calls, [True] * len(calls))
    assert fixed.timeline.start.tolist() == lived.start
    assert fixed.timeline.wait.tolist() == lived.wait
    assert fixed.timeline.duration.tolist() == lived.duration
    assert (path.begin[1:] == path.end[:-1]).all()
    assert not np.isin(path.part, (Part.REST, Part.UNKNOWN)).any()


def test_the_path_moves_to_what_the_removed_wait_hid() -> None:
    """Before, 6 ms of the GPU, then 5 of the CPU; without the wait between them, the CPU is beside the GPU's path."""
    wait = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, gap=5 * MS, problem=SYNC)
    last = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION)
    fixed, path = after_fixes([Call(Action.ENQUEUE, Kind.LAUNCH, gpu=6 * MS), wait, last])
    assert path.length == 6 * MS
    assert path.part.tolist() == [Part.GPU]
    assert fixed.timeline.wait.tolist() == [0, 0, MS]
