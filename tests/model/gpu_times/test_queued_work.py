"""When queued work begins after waits for events: against a plain model, and with work that grows as the rows do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times import kernels, lone_fit
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.queues import advance, append, begun_at, cut_from, is_pending, queues_of, write_all_down
from ffm.model.gpu_times.simulated_gpu import State, Trace
from ffm.model.timeline import Kind, Timeline
from tests.model.simulator import SYNC, Call, Member, traced, traced_together

APPEND, ADVANCE, CUT, WAIT = range(4)
STEPS = st.lists(st.tuples(st.integers(APPEND, WAIT), st.integers(0, 40), st.integers(1, 30)), max_size=60)


class Plain:
    """When the work of one stream begins, written down for each piece at once."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.arrival: list[int] = []
        self.first = 0
        """The first that nothing has waited for."""

    def advance(self, work: int, sooner: int) -> None:
        for later in range(work + 1, len(self.begun)):
            self.begun[later] = max(self.begun[later] - sooner, self.arrival[later])

    def cut(self, work: int, limit: int) -> None:
        while work >= self.first and self.begun[work] > limit:
            self.begun[work] = limit
            work -= 1


@given(STEPS)
def test_work_begins_when_it_does_if_all_is_written_down_at_once(steps: list[tuple[int, int, int]]) -> None:
    arrival = np.array([0 if kind != APPEND else place for kind, place, _ in steps], np.int64)
    nothing = np.zeros(len(steps), np.int64)
    queues = queues_of(
        arrival, nothing, nothing, np.full(len(steps), Action.ENQUEUE, np.uint8), np.zeros(0, np.int32), 1
    )
    gpu = np.ones(len(steps), np.int64)
    plain = Plain()
    rows: list[int] = []
    for row, (kind, place, time) in enumerate(steps):
        work = place % max(len(rows), 1)
        pending = bool(rows) and is_pending(queues, 0, work + 1)
        assert pending == (plain.first <= work < len(rows))
        if kind == APPEND:
            append(queues, 0, row, place + time)
            plain.begun.append(place + time)
            plain.arrival.append(place)
            rows.append(row)
        elif kind == WAIT:
            queues.last[0] = -1
            plain.first = len(rows)
        elif pending and kind == ADVANCE:
            advance(queues, 0, rows[work], work + 1, time)
            cut_from(queues, gpu, rows[work], time)
            plain.advance(work, time)
            plain.cut(work, time)
        elif pending:
            write_all_down(queues, 0)
            cut_from(queues, gpu, rows[-1], time)
            plain.cut(len(rows) - 1, time)
        assert [begun_at(queues, 0, row, number + 1) for number, row in enumerate(rows)] == plain.begun


def launch() -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, gpu=30_000, stream=1)


def record(event: int) -> Call:
    return Call(Action.RECORD_EVENT, Kind.OTHER, stream=1, event=event)


def wait(event: int) -> Call:
    return Call(Action.WAIT_EVENT, Kind.SYNCHRONIZATION, event=event, gap=1_000, problem=SYNC)


def all_at_first(turns: int) -> list[Call]:
    return [call for turn in range(turns) for call in (launch(), record(turn))]


def one_after_the_other(turns: int) -> list[Call]:
    return all_at_first(turns) + [wait(turn) for turn in range(turns)]


def the_last_one_first(turns: int) -> list[Call]:
    return all_at_first(turns) + [wait(turn) for turn in reversed(range(turns))]


def each_twice(turns: int) -> list[Call]:
    return all_at_first(turns) + [wait(turn // 2) for turn in range(turns)]


def some_behind(turns: int) -> list[Call]:
    calls = [[launch(), record(turn), *([wait(turn - 20)] if turn >= 20 else [])] for turn in range(turns)]
    return [call for turn in calls for call in turn]


class Counting:
    """A column that counts how often it is read."""

    def __init__(self, column: Any) -> None:
        self._column = column
        self.read = 0

    def __getitem__(self, row: int) -> Any:
        self.read += 1
        return self._column[row]

    def __setitem__(self, row: int, value: int) -> None:
        self._column[row] = value


@pytest.mark.parametrize("slower", [1, 2, 100])
@pytest.mark.parametrize("program", [one_after_the_other, the_last_one_first, each_twice, some_behind])
def test_waits_for_events_visit_no_more_of_the_queue_as_it_grows(
    program: Callable[[int], list[Call]], slower: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = program(300)
    assert most_reads(*traced(calls), slower, monkeypatch) <= len(calls)


@pytest.mark.parametrize("slower", [1, 2, 100])
@pytest.mark.parametrize("late", [1, 3])
def test_nor_do_threads_that_wait_for_late_and_early_events(
    late: int, slower: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some threads wait for the last events while another one waits for each of the earlier ones in turn."""
    turns = 300
    first = [*all_at_first(turns), wait(turns - 1)]
    others = [[wait(turns - 1 - number)] for number in range(1, late)]
    early = [dataclasses.replace(wait(turn), gap=30_000) for turn in range(turns - late)]
    members = [Member(0, place, calls) for place, calls in enumerate([first, *others, early])]
    timeline, work, gpu = traced_together(members)
    # Threads are simulated alone, so that only the first one waits: the GPU ends a kernel each 30 us.
    last = timeline.thread == late
    wait_ns = np.where(last, 30_000, timeline.wait)
    meanwhile = (timeline.thread > 0) & ~last
    wait_ns[meanwhile] = 30_000 * (turns - timeline.thread[meanwhile])
    timeline = dataclasses.replace(
        timeline,
        wait=wait_ns,
        duration=np.where(timeline.thread > 0, wait_ns, timeline.duration),
        gap=np.where(last, 0, timeline.gap),
    )
    assert most_reads(timeline, work, gpu, slower, monkeypatch) <= 2 * (late + 1) * turns


def most_reads(
    timeline: Timeline, work: DeviceWork, gpu: NDArray[np.int64], slower: int, monkeypatch: pytest.MonkeyPatch
) -> int:
    """Return how much work one fit visits at most where another run, in which the GPU was that much slower, timed the
    work: so waits show that it was sooner. Each visit of work reads what comes before it.
    """
    counting: list[Counting] = []
    at_the_start = kernels.at_the_start

    def counted(trace: Trace) -> State:
        state = at_the_start(trace)
        counting.append(Counting(state.queues.before))
        return state._replace(queues=state.queues._replace(before=counting[-1]))  # type: ignore[arg-type]

    for module in (kernels, lone_fit):
        monkeypatch.setattr(module, "at_the_start", counted)
    infer_gpu_times(timeline, dataclasses.replace(work, measured=np.where(gpu > 0, gpu * slower, -1)))
    return max(column.read for column in counting)
