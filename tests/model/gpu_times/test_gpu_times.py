"""The GPU's times, inferred from waits alone, against programs whose GPU times are known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model import grouping
from ffm.model.device import Action
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times import kernels
from ffm.model.gpu_times.expected_work import LEAST_SMALL_TRANSFER_NS, MOST_SMALL_TRANSFER_NS, SMALL_TRANSFER_NS
from ffm.model.gpu_times.inference import infer_gpu_times, infer_likely_times
from ffm.model.gpu_times.pauses import PAUSE_NS
from ffm.model.gpu_times.segment_lengths import WAKING_NS
from ffm.model.gpu_times.timelines import GuessedTotals, Inference
from ffm.model.timeline import Kind, Problem
from tests.examples import examples
from tests.model.compiling import all_compiled
from tests.model.simulator import SYNC, Call, live, programs, traced

MICROSECOND = 1_000


def launch(gpu: int, own: int = 0, gap: int = 0) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, own=own * MICROSECOND, gpu=gpu * MICROSECOND, gap=gap * MICROSECOND)


def wait(gap: int = 0, problem: Problem = SYNC) -> Call:
    return Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, gap=gap * MICROSECOND, problem=problem)


def infer(calls: list[Call], sites: list[int] | None = None, late: list[int] | None = None) -> Inference:
    """Infer from a trace; `late` microseconds pass from the end of the work until each wait ends."""
    timeline, work, _ = traced(calls)
    if sites is not None:
        timeline = dataclasses.replace(timeline, site=np.array(sites, np.int32))
    if late is not None:
        extra = np.array(late, np.int64) * MICROSECOND
        before = np.cumsum(extra) - extra
        timeline = dataclasses.replace(
            timeline, start=timeline.start + before, duration=timeline.duration + extra, wait=timeline.wait + extra
        )
    return infer_gpu_times(timeline, work)


def test_what_is_waited_for_at_once_is_known() -> None:
    found = infer([launch(300), wait(gap=50), launch(70), wait()])
    assert found.likely.gpu.tolist() == [300_000, 0, 70_000, 0]
    assert found.likely.explained == found.likely.waited == 370_000


def test_work_that_nobody_waited_for_is_bounded_by_the_next_wait() -> None:
    """The GPU finishes before the CPU asks, 500 us later: the kernel took anything up to that."""
    found = infer([launch(100, gap=500), wait()])
    assert found.slow.gpu[0] == 500_000
    assert found.fast.gpu[0] == 0


def test_it_is_known_how_much_no_wait_shows() -> None:
    assert infer([launch(300), wait(gap=50), launch(70), wait()]).guessed == GuessedTotals(0, 0, 0, 0)
    assert infer([launch(100, gap=500), wait()]).guessed == GuessedTotals(1, 0, 250_000, 500_000)
    assert infer([launch(100, gap=500)]).guessed == GuessedTotals(1, 0, 0, None)
    found = infer([launch(100), wait(), launch(30, gap=500), wait()], sites=[0, 1, 2, 3])
    assert found.guessed == GuessedTotals(1, 0, int(found.likely.gpu[2]), 500_000)


def test_a_transfer_that_no_wait_shows_is_a_guess_by_its_bytes() -> None:
    calls = [launch(100), wait(), launch(300, gap=500), wait()]
    timeline, work, _ = traced(calls)
    timeline = dataclasses.replace(timeline, site=np.arange(4, dtype=np.int32))
    work = dataclasses.replace(work, copied=np.array([1_000_000, 0, 3_000_000, 0]))
    found = infer_gpu_times(timeline, work)
    assert found.likely.gpu[2] == 300_000
    assert found.guessed is not None
    assert (found.guessed.count, found.guessed.likely) == (1, 300_000)


def test_what_was_measured_is_not_guessed() -> None:
    timeline, work, gpu = traced([launch(100, gap=500), wait()])
    assert infer_gpu_times(timeline, dataclasses.replace(work, measured=gpu)).guessed == GuessedTotals(0, 0, 0, 0)


def test_equal_work_elsewhere_tells_of_work_that_nobody_waited_for() -> None:
    calls = [launch(100), wait(gap=10), launch(100, gap=500), wait()]
    assert infer(calls, sites=[1, 2, 1, 3]).likely.gpu[2] == 100_000


def test_several_operations_share_what_was_waited_for() -> None:
    found = infer([launch(100), launch(200), launch(300), wait()])
    assert found.likely.gpu.sum() == 600_000 - 2 * PAUSE_NS


def test_the_shortest_of_many_equal_waits_is_the_work_and_the_rest_latency() -> None:
    late = [0, 5, 8, 12, 6, 9, 7, 11, 10, 6]
    calls = [call for _ in late for call in (launch(1000), wait(gap=20))]
    found = infer(calls, sites=[1, 2] * len(late), late=[part for extra in late for part in (0, extra)])
    assert set(found.likely.gpu[::2].tolist()) == {1_000_000}
    assert found.likely.latency[1::2].tolist() == [extra * MICROSECOND for extra in late]
    assert found.slow.gpu[::2].sum() == (1000 * len(late) + sum(late)) * MICROSECOND


def test_a_wait_far_above_the_usual_was_for_longer_work() -> None:
    late = [0, 5, 8, 12, 6, 9, 7, 11, 10, 6, 800]
    calls = [call for _ in late for call in (launch(1000), wait(gap=20))]
    found = infer(calls, sites=[1, 2] * len(late), late=[part for extra in late for part in (0, extra)])
    assert found.likely.gpu[-2] == pytest.approx(1_800_000, abs=20_000)


def test_work_that_differs_each_time_is_taken_as_it_is() -> None:
    lengths = [100, 900, 400, 2000, 50, 700]
    calls = [call for length in lengths for call in (launch(length), wait(gap=20))]
    found = infer(calls, sites=[1, 2] * len(lengths))
    usual = found.latency_ns
    assert found.likely.gpu[::2].tolist() == [max(length * MICROSECOND - usual, 0) for length in lengths]


def timed(calls: list[Call], elapsed: list[int], arriving: list[int]) -> Inference:
    """Infer from waits, and from what events said of each call, in microseconds; -1 for nothing."""
    timeline, work, _ = traced(calls)
    timeline = dataclasses.replace(timeline, site=np.array([1, 2] * (len(calls) // 2), np.int32))
    passed = np.array(arriving, np.int64) * MICROSECOND
    known = np.array(elapsed, np.int64) >= 0
    measured = np.where(known, np.array(elapsed, np.int64) * MICROSECOND - passed, -1)
    return infer_gpu_times(timeline, dataclasses.replace(work, measured=measured, arriving=passed))


def test_what_passes_before_work_reaches_an_idle_gpu_is_not_its_time() -> None:
    """The events also timed the call, which took 40 us."""
    found = timed([launch(200, own=40), wait()] * 10, [240, -1] * 10, [40, 0] * 10)
    assert set(found.likely.gpu[::2].tolist()) == {200_000}
    assert set(found.fast.gpu[::2].tolist()) == {200_000}
    assert (found.slow.gpu[::2] >= found.likely.gpu[::2]).all()


def test_a_call_that_returns_late_does_not_make_its_work_shorter() -> None:
    """One of the calls took long after the work had reached the GPU: the others tell how long that took."""
    arriving = [40] * 9 + [130]
    found = timed([launch(200, own=40), wait()] * 10, [240, -1] * 10, [part for one in arriving for part in (one, 0)])
    assert set(found.likely.gpu[::2].tolist()) == {200_000}


def test_a_wait_for_nothing_known_is_not_explained() -> None:
    """A call with unknown effect waits; nothing was enqueued before."""
    timeline, work, _ = traced([wait(gap=10)])
    timeline = dataclasses.replace(timeline, duration=np.array([90_000]), wait=np.array([90_000]))
    found = infer_gpu_times(timeline, work)
    assert (found.likely.explained, found.likely.waited) == (0, 90_000)
    assert Replay(timeline, work, found).selected(np.array([True])).likely_s == 90e-6


@given(programs(streams=4))
@settings(max_examples=examples(200), deadline=None)
def test_no_work_lasts_beyond_a_wait_for_all_of_it(calls: list[Call]) -> None:
    """Whatever is inferred, the run with these GPU times waits no longer than observed."""
    timeline, work, _ = traced(calls)
    for times in (found := infer_gpu_times(timeline, work)).likely, found.slow, found.fast:
        assert (times.gpu >= 0).all()
        assert times.explained <= times.waited == timeline.wait.sum()
        ends = timeline.start + timeline.wait
        context = timeline.kind == Kind.SYNCHRONIZATION
        whole = np.flatnonzero(context & (work.action == Action.WAIT_CONTEXT))
        following = whole[whole + 1 < len(timeline)] + 1
        over = timeline.start + times.left
        assert (over[following] <= np.maximum(ends[following - 1], timeline.start[following - 1])).all()


@given(programs())
@settings(max_examples=examples(100), deadline=None)
def test_times_in_32_bits_save_the_same(calls: list[Call]) -> None:
    timeline, work, _ = traced(calls)
    found = infer_gpu_times(timeline, work)
    several = {name: getattr(found, name).of_type(np.int64) for name in ("likely", "slow", "fast")}
    wide = dataclasses.replace(found, **several)
    waits = timeline.wait > 0
    assert Replay(timeline, work, found).without(waits) == Replay(timeline, work, wide).without(waits)


@given(programs(), st.integers(0, 30_000))
@settings(max_examples=examples(100), deadline=None)
def test_times_that_turn_out_to_be_longer_are_fitted_as_any_are(calls: list[Call], most: int) -> None:
    timeline, work, _ = traced(calls)
    found = infer_gpu_times(timeline, work)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernels, "MOST_SHORT", most)
        longer = infer_gpu_times(timeline, work)
    for times, others in ((found.likely, longer.likely), (found.slow, longer.slow), (found.fast, longer.fast)):
        assert [times.explained, times.waited] == [others.explained, others.waited]
        for name in ("gpu", "left", "latency"):
            assert getattr(times, name).tolist() == getattr(others, name).tolist()


def test_longer_times_are_kept_in_64_bits() -> None:
    calls = [
        Call(Action.ENQUEUE, Kind.LAUNCH, own=1_000, gpu=6_000_000_000),
        Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION),
    ]
    timeline, work, _ = traced(calls)
    found = infer_gpu_times(timeline, work)
    assert {times.gpu.dtype for times in (found.likely, found.slow, found.fast)} == {np.dtype(np.int64)}
    assert found.likely.gpu.max() > 5_000_000_000


@given(programs())
@settings(max_examples=examples(200), deadline=None)
def test_the_interval_encloses_the_estimate(calls: list[Call]) -> None:
    timeline, work, _ = traced(calls)
    found = Replay(timeline, work, infer_gpu_times(timeline, work)).selected(np.ones(len(calls), bool))
    assert 0 <= found.low_s <= found.likely_s <= found.high_s <= live(calls, [False] * len(calls)).end / 1e9


@given(programs(streams=2), st.integers(1, 5), st.booleans())
def test_any_size_of_part_gives_the_same_times(calls: list[Call], size: int, late: bool) -> None:
    """What is computed part by part is the same to the nanosecond; so is the likely timeline alone."""
    timeline, work, gpu = traced(calls)
    work = dataclasses.replace(work, measured=np.where(np.arange(len(calls)) % 3 == 0, gpu, -1))
    whole = infer_gpu_times(timeline, work, 5_000, anything_late=late)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "PART_ROWS", size)
        divided = infer_gpu_times(timeline, work, 5_000, anything_late=late)
        alone = infer_likely_times(timeline, work, 5_000)
    pairs = [(whole.likely, divided.likely), (whole.slow, divided.slow), (whole.fast, divided.fast)]
    if whole.fastest is not None and divided.fastest is not None:
        pairs.append((whole.fastest, divided.fastest))
    assert (whole.fastest is None, divided.fastest is None) == (not late, not late)
    for first, second in [*pairs, (whole.likely, alone.likely)]:
        for name in ("gpu", "left", "latency"):
            assert getattr(first, name).tolist() == getattr(second, name).tolist()
        assert first.explained == second.explained
    assert alone.latency_ns == whole.latency_ns


@given(programs(streams=2))
@settings(max_examples=examples(20), deadline=None)
@pytest.mark.thorough
def test_compiled_and_plain_infer_the_same(calls: list[Call]) -> None:
    timeline, work, _ = traced(calls)
    plain = infer_gpu_times(timeline, work)
    with all_compiled():
        again = infer_gpu_times(timeline, work)
    for first, second in zip(
        (plain.likely, plain.slow, plain.fast), (again.likely, again.slow, again.fast), strict=True
    ):
        assert first.gpu.tolist() == second.gpu.tolist()
        assert first.latency.tolist() == second.latency.tolist()


def test_one_late_wait_of_very_many_is_a_late_thread() -> None:
    late = [0, 5, 8, 12, 6, 9, 7, 11, 10, 6] * 6
    late[41] = 800
    calls = [call for _ in late for call in (launch(1000), wait(gap=20))]
    found = infer(calls, sites=[1, 2] * len(late), late=[part for extra in late for part in (0, extra)])
    assert found.likely.gpu[82] == pytest.approx(1_000_000, abs=20_000)
    assert found.likely.latency[83] == pytest.approx(800_000, abs=20_000)
    assert found.slow.gpu[82] == pytest.approx(1_800_000, abs=20_000)


def test_a_few_short_segments_do_not_say_what_all_work_needs() -> None:
    """The first of 60 kernels was almost done when its wait began; the others took a millisecond."""
    lengths = [300] + [1000] * 59
    calls = [call for length in lengths for call in (launch(length), wait(gap=20))]
    found = infer(calls, sites=[1, 2] * len(lengths))
    assert found.likely.gpu[2::2].tolist() == [1_000_000] * 59
    assert found.likely.gpu[0] == 300_000


def test_a_known_latency_is_not_the_work_s() -> None:
    timeline, work, _ = traced([call for _ in range(5) for call in (launch(1000), wait(gap=20))])
    timeline = dataclasses.replace(timeline, site=timeline.site % 2)
    found = infer_gpu_times(timeline, work, 40_000)
    assert set(found.slow.gpu[::2].tolist()) == {1_000_000}
    assert set(found.likely.gpu[::2].tolist()) == {980_000}
    assert set(found.fast.gpu[::2].tolist()) == {960_000}
    assert set(found.likely.latency[1::2].tolist()) == {20_000}


def test_a_wait_that_nothing_compares_with_may_have_ended_late() -> None:
    """Two launches, each at its own site: a wait for one of them says nothing about the other's latency."""
    timeline, work, _ = traced([launch(1000), wait(gap=20), launch(1000), wait()])
    found = infer_gpu_times(timeline, work, 40_000)
    assert found.likely.gpu[::2].tolist() == [980_000] * 2
    assert found.fast.gpu[::2].tolist() == [960_000 - WAKING_NS] * 2
    measured = dataclasses.replace(work, measured=np.where(timeline.kind == Kind.LAUNCH, 1_000_000, -1))
    assert infer_gpu_times(timeline, measured, 40_000).fast.gpu[::2].tolist() == [1_000_000] * 2


def test_a_small_set_beside_kernels_takes_the_gpu_little() -> None:
    timeline, work, _ = traced([launch(300), launch(100), launch(300), wait()])
    work = dataclasses.replace(work, copied=np.array([0, 4096, 0, 0]))
    found = infer_gpu_times(timeline, work)
    assert found.likely.gpu.tolist() == [
        (700_000 - SMALL_TRANSFER_NS) // 2 - PAUSE_NS,
        SMALL_TRANSFER_NS,
        (700_000 - SMALL_TRANSFER_NS) // 2 - PAUSE_NS,
        0,
    ]


def test_a_gpu_that_keeps_up_is_idle_between_short_kernels() -> None:
    """Five calls of 10 us each enqueue 2 us of work. The wait shows the last; the others could take up to 10 us."""
    calls = [launch(2, own=10) for _ in range(5)] + [wait(gap=100)]
    timeline, work, _ = traced(calls * 4)
    sites = np.tile(np.array([1, 1, 1, 1, 2, 3], np.int32), 4)
    late = np.where(timeline.wait > 0, 3 * MICROSECOND, 0)
    timeline = dataclasses.replace(
        timeline,
        site=sites,
        start=timeline.start + np.cumsum(late) - late,
        duration=timeline.duration + late,
        wait=timeline.wait + late,
    )
    found = infer_gpu_times(timeline, work, 3 * MICROSECOND)
    true = 2 * MICROSECOND * 5 * 4
    assert found.fast.gpu.sum() <= true <= found.slow.gpu.sum()
    assert (found.likely.gpu[sites == 1] <= 5 * MICROSECOND).all()
    assert found.likely.gpu.sum() <= 2 * true


def test_queued_work_keeps_the_gpu_busy_from_the_first_call_on() -> None:
    """Each call takes 10 us and enqueues 100 us: the wait shows all of it."""
    found = infer([launch(100, own=10) for _ in range(5)] + [wait()])
    assert found.likely.gpu.sum() == 500_000 - 4 * PAUSE_NS


def test_how_much_of_a_short_read_back_is_the_gpu_s_is_unknown() -> None:
    """Reading back 4 bytes waits for 6 us each time, 3 us of which are the latency of any wait."""
    read = Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own=4 * MICROSECOND, gpu=6 * MICROSECOND, gap=20 * MICROSECOND)
    timeline, work, _ = traced([read] * 5)
    work = dataclasses.replace(work, copied=np.full(5, 4))
    found = infer_gpu_times(timeline, work, 3 * MICROSECOND)
    assert set(found.fast.gpu.tolist()) == {0}
    assert set(found.likely.gpu.tolist()) == {1_500}
    assert set(found.slow.gpu.tolist()) == {6_000}


def test_work_of_which_no_wait_tells_lasts_no_longer_than_the_rest() -> None:
    """A kernel of unknown length, before a pause of ten seconds, is taken to be like those that were waited for."""
    calls = [call for _ in range(5) for call in (launch(300), wait(gap=20))] + [launch(70, gap=10_000_000), wait()]
    found = infer(calls, sites=[1, 2] * 5 + [3, 4])
    assert found.likely.gpu[10] == 300_000
    assert found.slow.gpu[10] == 10_000_000_000


def measured(calls: list[Call], known: list[int], late: int) -> Inference:
    """Infer with events for some calls' work; each wait ends `late` microseconds after the work."""
    timeline, work, gpu = traced(calls)
    extra = np.where(timeline.wait > 0, late * MICROSECOND, 0)
    timeline = dataclasses.replace(
        timeline,
        start=timeline.start + np.cumsum(extra) - extra,
        duration=timeline.duration + extra,
        wait=timeline.wait + extra,
    )
    told = np.full(len(calls), -1, np.int64)
    told[known] = gpu[known]
    return infer_gpu_times(timeline, dataclasses.replace(work, measured=told))


def test_measured_work_leaves_the_rest_of_a_wait_to_latency() -> None:
    """Without events each kernel would seem 40 us longer, because every wait ends that late."""
    found = measured([launch(300), wait(gap=50)] * 4, known=[0, 2, 4, 6], late=40)
    for times in found.likely, found.slow, found.fast:
        assert times.gpu[::2].tolist() == [300_000] * 4
        assert times.latency[1::2].tolist() == [40_000] * 4


def test_what_was_not_measured_gets_what_measured_work_and_the_usual_latency_leave() -> None:
    calls = [launch(300), wait(gap=50)] * 4 + [launch(200), launch(500), wait()]
    found = measured(calls, known=[0, 2, 4, 6, 8], late=40)
    assert found.likely.gpu[[8, 9]].tolist() == [200_000, 500_000 - PAUSE_NS]


def test_equal_work_takes_as_long_as_what_was_measured_of_it() -> None:
    timeline, work, _ = traced([launch(300), launch(300), launch(100)])
    timeline = dataclasses.replace(timeline, site=np.array([1, 1, 2], np.int32))
    work = dataclasses.replace(work, measured=np.array([300_000, -1, -1]))
    assert infer_gpu_times(timeline, work).likely.gpu[1] == 300_000


@given(st.integers(10, 60), st.integers(1, 9), st.integers(1, 8), st.integers(1, 40), st.integers(0, 8))
@settings(max_examples=examples(60), deadline=None)
def test_a_download_that_comes_while_measured_work_lasts_takes_what_that_leaves_of_the_wait(
    kernel: int, own: int, gpu: int, gap: int, latency: int
) -> None:
    """However long the CPU takes to ask for it, and however late all waits end."""
    download = Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, *(MICROSECOND * number for number in (own, gpu, gap)))
    timeline, work, true = traced([launch(kernel), wait(gap=50), launch(kernel), download] * 6)
    late = np.where(timeline.wait > 0, latency * MICROSECOND, 0)
    timeline = dataclasses.replace(
        timeline,
        site=timeline.site % 4,
        start=timeline.start + np.cumsum(late) - late,
        duration=timeline.duration + late,
        wait=timeline.wait + late,
    )
    kernels = timeline.kind == Kind.LAUNCH
    downloads = timeline.kind == Kind.TRANSFER
    work = dataclasses.replace(work, measured=np.where(kernels, true, -1), copied=np.where(downloads, 100_000, 0))
    found = infer_gpu_times(timeline, work)
    assert found.likely.gpu[downloads].tolist() == (true - PAUSE_NS)[downloads].tolist()
    assert (found.likely.latency[downloads] == latency * MICROSECOND).all()


@pytest.mark.parametrize("copied", [4, 4096])
def test_a_transfer_of_a_few_bytes_that_nothing_shows_may_take_less_or_more(copied: int) -> None:
    upload = Call(Action.WAIT_AND_ENQUEUE, Kind.TRANSFER, own=MICROSECOND)
    timeline, work, true = traced([upload, launch(50), wait()] * 6)
    timeline = dataclasses.replace(timeline, site=timeline.site % 3)
    kernels, uploads = timeline.kind == Kind.LAUNCH, timeline.kind == Kind.TRANSFER
    work = dataclasses.replace(work, measured=np.where(kernels, true, -1), copied=np.where(uploads, copied, 0))
    found = infer_gpu_times(timeline, work)
    for times, taken in (
        (found.fast, LEAST_SMALL_TRANSFER_NS),
        (found.likely, SMALL_TRANSFER_NS),
        (found.slow, MOST_SMALL_TRANSFER_NS),
    ):
        assert set(times.gpu[uploads].tolist()) == {taken}
