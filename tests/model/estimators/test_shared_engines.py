"""What streams gain that need the same part of a device, which does one thing after the other."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.device import Action, Direction, Fills
from ffm.model.estimators.replay import Replay, Replayed
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Kind
from tests.examples import examples
from tests.model.simulator import NON_BLOCKING, SYNC, Call, traced

MICROSECOND = 1_000
SECOND = 1_000_000_000


def in_turns(streams: list[int], gpu: list[int], direction: list[Direction], *, waits: bool = True) -> list[Call]:
    """Enqueue work on streams, and wait for each piece without need if `waits`; a last wait for all is needed."""
    calls = []
    for stream, length, way in zip(streams, gpu, direction, strict=True):
        kind = Kind.LAUNCH if way is Direction.NONE else Kind.TRANSFER
        calls.append(Call(Action.ENQUEUE, kind, own=2 * MICROSECOND, gpu=length, stream=stream))
        if waits:
            calls.append(Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, stream=stream, problem=SYNC))
    return [*calls, Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION)]


def without_waits(
    calls: list[Call], direction: list[Direction], fills: list[Fills] | None = None
) -> tuple[Replayed, float]:
    """Return what the run saves without its needless waits, and how long it takes, in seconds."""
    timeline, work, gpu = traced(calls)
    enqueues = work.action == Action.ENQUEUE
    known = np.full(len(calls), Direction.NONE, np.uint8)
    known[enqueues] = direction
    filled = np.full(len(calls), Fills.UNKNOWN, np.uint8)
    filled[enqueues] = Fills.UNKNOWN if fills is None else fills
    work = dataclasses.replace(work, direction=known, fills=filled, measured=np.where(enqueues, gpu, -1))
    replay = Replay(timeline, work, infer_gpu_times(timeline, work, 5 * MICROSECOND))
    took = int(timeline.start[-1] + timeline.duration[-1] - timeline.start[0]) / SECOND
    return replay.selected((timeline.problem & SYNC) != 0), took


def kernel(stream: int, length: int) -> Call:
    """A launch; `length` is in microseconds, with what the kernel waits for others as measured."""
    return Call(Action.ENQUEUE, Kind.LAUNCH, gpu=length * MICROSECOND, stream=stream)


NEEDLESS = Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, stream=2, problem=SYNC)
LAST = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION)


lengths = st.lists(st.integers(1, 9).map(lambda value: 100 * value * MICROSECOND), min_size=2, max_size=8)


@given(lengths, st.sampled_from([Direction.TO_DEVICE, Direction.FROM_DEVICE]), st.data())
@settings(max_examples=examples(60), deadline=None)
def test_transfers_in_one_direction_take_no_less_than_all_of_them(
    gpu: list[int], way: Direction, data: st.DataObject
) -> None:
    streams = [data.draw(st.integers(1, NON_BLOCKING)) for _ in gpu]
    directions = [way] * len(gpu)
    saved, took = without_waits(in_turns(streams, gpu, directions), directions)
    most = took - sum(gpu) / SECOND
    assert saved.likely_s <= most + 1e-9
    assert saved.high_s <= most + 1e-9


@given(lengths, st.data())
@settings(max_examples=examples(60), deadline=None)
def test_kernels_surely_save_no_more_than_if_they_ran_one_after_the_other(gpu: list[int], data: st.DataObject) -> None:
    streams = [data.draw(st.integers(1, NON_BLOCKING)) for _ in gpu]
    directions = [Direction.NONE] * len(gpu)
    calls = in_turns(streams, gpu, directions)
    saved, took = without_waits(calls, directions)
    assert saved.low_s <= took - sum(gpu) / SECOND + 1e-9
    assert saved.low_s <= saved.likely_s <= saved.high_s


def test_transfers_in_both_directions_go_on_at_once() -> None:
    directions = [Direction.TO_DEVICE, Direction.FROM_DEVICE]
    calls = in_turns([1, 2], [500 * MICROSECOND] * 2, directions)
    saved, took = without_waits(calls, directions)
    assert saved.likely_s > took / 3


def test_kernels_may_run_at_once() -> None:
    calls = in_turns([1, 2], [500 * MICROSECOND] * 2, [Direction.NONE] * 2)
    saved, took = without_waits(calls, [Direction.NONE] * 2)
    assert saved.likely_s > took / 3
    assert saved.low_s < took / 10


@given(lengths, st.data())
@settings(max_examples=examples(60), deadline=None)
def test_kernels_that_fill_the_device_run_one_after_the_other(gpu: list[int], data: st.DataObject) -> None:
    streams = [data.draw(st.integers(1, NON_BLOCKING)) for _ in gpu]
    directions = [Direction.NONE] * len(gpu)
    calls = in_turns(streams, gpu, directions)
    saved, took = without_waits(calls, directions, [Fills.ALL] * len(gpu))
    most = took - sum(gpu) / SECOND
    assert saved.likely_s <= most + 1e-9
    assert saved.high_s <= most + 1e-9


@pytest.mark.parametrize("other", [Fills.UNKNOWN, Fills.LITTLE])
def test_kernel_comes_behind_one_that_fills_the_device_and_beside_one_before_it(other: Fills) -> None:
    directions, gpu = [Direction.NONE] * 2, [500 * MICROSECOND] * 2
    calls = in_turns([1, 2], gpu, directions)
    behind, took = without_waits(calls, directions, [Fills.ALL, other])
    assert behind.high_s <= took - sum(gpu) / SECOND + 1e-9
    before, _ = without_waits(calls, directions, [other, Fills.ALL])
    assert before.likely_s > took / 3


@given(lengths, st.data())
@settings(max_examples=examples(60), deadline=None)
def test_kernels_surely_run_beside_each_other_only_if_all_fill_little(gpu: list[int], data: st.DataObject) -> None:
    streams = [data.draw(st.integers(1, NON_BLOCKING)) for _ in gpu]
    directions = [Direction.NONE] * len(gpu)
    calls = in_turns(streams, gpu, directions)
    fills = [data.draw(st.sampled_from(Fills)) for _ in gpu]
    saved, took = without_waits(calls, directions, fills)
    if set(fills) == {Fills.LITTLE}:
        assert saved.low_s == without_waits(calls, directions)[0].likely_s
    else:
        assert saved.low_s <= took - sum(gpu) / SECOND + 1e-9
    assert saved.low_s <= saved.likely_s <= saved.high_s


@given(lengths, st.data())
@settings(max_examples=examples(60), deadline=None)
def test_work_that_ran_at_once_still_does(gpu: list[int], data: st.DataObject) -> None:
    """Events around work also time how long that waits for others, so nothing of it waits for them a second time."""
    streams = [data.draw(st.integers(1, NON_BLOCKING)) for _ in gpu]
    ways = [Direction.NONE, Direction.TO_DEVICE, Direction.FROM_DEVICE]
    directions = [data.draw(st.sampled_from(ways)) for _ in gpu]
    fills = [data.draw(st.sampled_from(Fills)) for _ in gpu]
    nothing_needless = in_turns(streams, gpu, directions, waits=False)
    first = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=3 * MICROSECOND, problem=SYNC)
    saved, _ = without_waits([first, *nothing_needless], directions, fills)
    assert abs(saved.likely_s - first.own / SECOND) <= 1e-9
    assert abs(saved.low_s - first.own / SECOND) <= 1e-9


def test_upload_that_delays_one_before_it_on_the_cpu_delays_it_by_no_more_than_measured() -> None:
    """The second upload begins first, and the first one's stream has a kernel behind it when the second is launched."""
    directions = [Direction.NONE, Direction.TO_DEVICE, Direction.NONE, Direction.NONE, Direction.TO_DEVICE]
    calls = in_turns([2, 2, 1, 2, 1], [200_000, *[100_000] * 4], directions, waits=False)
    first = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=3 * MICROSECOND, problem=SYNC)
    saved, _ = without_waits([first, *calls], directions)
    assert saved.likely_s == pytest.approx(first.own / SECOND, abs=1e-9)


def test_time_that_a_kernel_waited_for_room_is_none_of_its_own() -> None:
    """Each small kernel waits 500 us for one that fills the device, and runs for 500. Without waits for the small ones,
    they run beside the next ones that fill the device.
    """
    calls = [kernel(1, 500), kernel(2, 1000), NEEDLESS] * 4
    saved, _ = without_waits([*calls, LAST], [Direction.NONE] * 8, [Fills.ALL, Fills.UNKNOWN] * 4)
    assert saved.likely_s == pytest.approx(4 * 1000e-6 - 5 * 500e-6, abs=5e-6)
    assert saved.low_s == 0


def test_kernel_begins_in_a_pause_that_is_too_short_for_it() -> None:
    """The last kernel finds the device free from 540 to 1,000 us, until a small one on another stream is over. The one
    behind that, which fills the device, too, comes 40 us later for it.
    """
    calls = [kernel(1, 500), kernel(2, 1000), kernel(2, 500), kernel(1, 40), NEEDLESS, kernel(1, 500), LAST]
    fills = [Fills.ALL, Fills.UNKNOWN, Fills.ALL, Fills.ALL, Fills.ALL]
    saved, took = without_waits(calls, [Direction.NONE] * 5, fills)
    assert took == pytest.approx(2000e-6)
    assert saved.likely_s == pytest.approx(460e-6, abs=5e-6)
