"""The replay: against an exact simulation, by hand, and by laws that must hold."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffm.model.copies import WORTH_TIMING_BYTES
from ffm.model.device import Action, DeviceWork, ThreadLives
from ffm.model.estimators.replay import Replay
from ffm.model.estimators.simulation.passes import COPIED_BYTES_A_NANOSECOND
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.timeline import Kind, Problem, Timeline
from tests.examples import examples
from tests.model.compiling import all_compiled
from tests.model.given_times import given_gpu_times
from tests.model.simulator import NON_BLOCKING, SYNC, TRANSFER, Call, Member, live, programs, traced, traced_together

SECOND = 1_000_000_000


def exact(calls: list[Call]) -> Replay:
    """A replay that is given the GPU's times."""
    timeline, work, gpu = traced(calls)
    return Replay(timeline, work, given_gpu_times(timeline, work, gpu))


def true_saving(calls: list[Call], fixed: list[bool]) -> float:
    """What the simulated program saves, in seconds."""
    return (live(calls, [False] * len(calls)).end - live(calls, fixed).end) / SECOND


@given(st.data())
@settings(max_examples=examples(300), deadline=None)
def test_with_the_true_times_of_the_gpu_the_true_saving_comes_out(data: st.DataObject) -> None:
    calls = data.draw(programs())
    fixed = [data.draw(st.booleans()) for _ in calls]
    assert exact(calls).selected(np.array(fixed, bool)).likely_s == pytest.approx(
        max(true_saving(calls, fixed), 0), abs=1e-9
    )


@given(st.data())
@settings(max_examples=examples(300), deadline=None)
def test_streams_and_events_keep_their_order(data: st.DataObject) -> None:
    calls = data.draw(programs(streams=4))
    fixed = [data.draw(st.booleans()) for _ in calls]
    assert exact(calls).selected(np.array(fixed, bool)).likely_s == pytest.approx(
        max(true_saving(calls, fixed), 0), abs=1e-9
    )


@given(programs(), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_skipping_what_runs_as_before_changes_nothing(calls: list[Call], data: st.DataObject) -> None:
    rows = np.array([data.draw(st.booleans()) for _ in calls], bool)
    replay = exact(calls)
    skipping = replay.selected(rows)
    replay._passes.jump = False
    assert replay.selected(rows) == skipping


@given(programs(streams=2), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_fixing_more_never_saves_less_nor_more_than_the_run(calls: list[Call], data: st.DataObject) -> None:
    some = np.array([data.draw(st.booleans()) for _ in calls], bool)
    replay = exact(calls)
    everything = replay.selected(np.ones(len(calls), bool))
    assert replay.selected(some).likely_s <= everything.likely_s + 1e-12
    assert everything.likely_s <= live(calls, [False] * len(calls)).end / SECOND


@given(programs(), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_groups_are_replayed_as_if_each_were_selected(calls: list[Call], data: st.DataObject) -> None:
    groups = np.array([data.draw(st.integers(-1, 2)) for _ in calls], np.int32)
    replay = exact(calls)
    together = replay.by_group(groups, np.arange(3, dtype=np.int32), 3)
    assert together == [replay.selected(groups == number) for number in range(3)]


@given(programs(streams=2))
@settings(max_examples=examples(20), deadline=None)
@pytest.mark.thorough
def test_compiled_and_plain_say_the_same(calls: list[Call]) -> None:
    def said() -> tuple[object, ...]:
        without = exact(calls).without_probes(np.full(len(calls), 1_000))
        columns = (without.start, without.duration, without.wait, without.gap)
        return exact(calls).selected(np.ones(len(calls), bool)), *(column.tolist() for column in columns)

    plain = said()
    with all_compiled():
        assert said() == plain


def launch(gpu: int, gap: int = 0) -> Call:
    return Call(Action.ENQUEUE, Kind.LAUNCH, gpu=gpu, gap=gap)


def wait(gap: int = 0, problem: Problem = SYNC) -> Call:
    return Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, gap=gap, problem=problem)


def seconds(calls: list[Call]) -> list[Call]:
    """The same with all times in seconds instead of nanoseconds."""
    return [
        dataclasses.replace(
            call,
            own=call.own * SECOND,
            gpu=call.gpu * SECOND,
            gap=call.gap * SECOND,
            first_use=call.first_use * SECOND,
        )
        for call in calls
    ]


def saved(calls: list[Call]) -> float:
    return exact(seconds(calls)).selected(np.ones(len(calls), bool)).likely_s


def test_a_busy_gpu_saves_only_what_it_was_idle() -> None:
    """Ten times: a kernel of 8 s, a wait, 1 s of CPU work. Without the waits the GPU is never idle, and the last wait
    takes what is left.
    """
    loop = [launch(8), wait(gap=1)] * 10
    assert saved([*loop, wait(problem=Problem.NONE)]) == 10  # the last second of work overlaps the last kernel


def test_an_idle_gpu_saves_the_whole_wait() -> None:
    """Kernel of 1 s, wait, 5 s of CPU work: the work hides the kernel."""
    assert saved([launch(1), wait(gap=5), wait(problem=Problem.NONE)]) == 1


def test_whether_the_latency_of_a_removed_wait_recurs_at_the_next_one_is_unknown() -> None:
    """A kernel of 1 s whose wait lasts 5 s, 2 s of work, then another wait for it. If what the first wait lasted beyond
    the kernel was the GPU's, it is over when it was; if it was waking, it comes again.
    """
    timeline, work, gpu = traced(seconds([launch(1), wait(gap=2), wait(problem=Problem.NONE)]))
    later = np.array([0, 0, 4], np.int64) * SECOND
    lasts = np.array([0, 4, 0], np.int64) * SECOND
    timeline = dataclasses.replace(
        timeline, start=timeline.start + later, duration=timeline.duration + lasts, wait=timeline.wait + lasts
    )
    found = Replay(timeline, work, given_gpu_times(timeline, work, gpu)).selected(np.ones(3, bool))
    assert (found.low_s, found.likely_s) == (1, 2)


def test_a_wait_that_found_the_work_done_does_not_make_the_next_one_wake_sooner() -> None:
    """A kernel of 1 s whose wait lasts 5 s, as waking takes 4; a second wait for it, which finds it done; a third one.
    Without the first two, the third takes as long as the first did.
    """
    timeline, work, gpu = traced(seconds([launch(1), wait(), wait(), wait(problem=Problem.NONE)]))
    lasts = np.array([0, 4, 0, 0], np.int64) * SECOND
    later = np.array([0, 0, 4, 4], np.int64) * SECOND
    timeline = dataclasses.replace(
        timeline, start=timeline.start + later, duration=timeline.duration + lasts, wait=timeline.wait + lasts
    )
    inference = dataclasses.replace(given_gpu_times(timeline, work, gpu), latency_ns=4 * SECOND)
    assert Replay(timeline, work, inference).selected(np.ones(4, bool)).likely_s == 0


def test_a_wait_for_the_default_stream_does_not_wait_for_streams_that_it_does_not_order() -> None:
    """A kernel of 8 s on a non-blocking stream, one of 1 s on the default stream, a wait for that, 2 s of work, a wait
    for all: without the first wait, the last one takes as much longer.
    """
    calls = seconds(
        [
            dataclasses.replace(launch(8), stream=NON_BLOCKING),
            launch(1),
            Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, gap=2, problem=SYNC),
            wait(problem=Problem.NONE),
        ]
    )
    timeline, work, _ = traced(calls)
    inference = infer_gpu_times(timeline, work)
    assert inference.likely.gpu[:2].tolist() == [8 * SECOND, SECOND]
    assert Replay(timeline, work, inference).selected(np.ones(4, bool)).high_s == 0


def test_a_next_wait_takes_up_what_was_not_saved() -> None:
    """Dissertation, Figure 4.4, limited benefit: 5 s of waiting, 2 s of work, then a needed wait."""
    assert saved([launch(5), wait(gap=2), launch(1), wait(problem=Problem.NONE)]) == 2


def test_a_wait_for_an_event_does_not_take_up_what_other_work_waited_for() -> None:
    event = Call(Action.WAIT_EVENT, Kind.SYNCHRONIZATION, event=0)
    assert saved([launch(5), wait(), event]) == 5  # the event was never recorded


def test_a_repeated_copy_goes_with_its_time_on_the_gpu() -> None:
    copy = Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own=1, gpu=3, gap=1, problem=SYNC | TRANSFER)
    assert saved([copy, launch(2), wait(problem=Problem.NONE)]) == 4


def test_memory_that_the_cpu_can_reach_is_set_by_the_cpu() -> None:
    """The set takes the GPU 3 s and the CPU almost none; 2 s of work hide two of the 5 s before it."""
    timeline, work, gpu = traced(
        seconds(
            [
                launch(5),
                Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, gpu=3, gap=2, problem=SYNC),
                wait(problem=Problem.NONE),
            ]
        )
    )
    work.action[1] = Action.SET_AND_WAIT
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    assert replay.selected(np.ones(3, bool)).likely_s == 3 + 2


def test_a_copy_whose_wait_is_needed_leaves_a_wait_for_what_was_before() -> None:
    copy = Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own=1, gpu=3, gap=1, problem=TRANSFER)
    assert saved([launch(6), copy]) == 3  # the wait for the launch stays; the copy's own time was within it


def test_a_misplaced_wait_saves_what_the_cpu_does_until_the_first_use() -> None:
    moved = Call(
        Action.WAIT_CONTEXT,
        Kind.SYNCHRONIZATION,
        gap=2,
        problem=Problem.MISPLACED_SYNCHRONIZATION,
        first_use=3,
    )
    rest = Call(Action.NONE, Kind.OTHER, own=1, gap=4)
    assert saved([launch(10), moved, rest]) == 3


def free(problem: Problem = SYNC) -> Call:
    return Call(Action.WAIT_CONTEXT, Kind.FREE, own=2, gap=1, problem=problem)


def test_a_free_goes_with_the_allocation_that_could_have_its_memory() -> None:
    """Free and allocation in a loop: 2 s and 3 s of the calls; for the last free only the wait disappears."""
    allocation = Call(Action.NONE, Kind.ALLOCATION, own=3)
    timeline, work, gpu = traced(seconds([allocation, launch(1), free(), allocation, launch(1), free()]))
    work.partner[2], work.partner[3] = 3, 2
    replay = Replay(timeline, work, given_gpu_times(timeline, work, gpu))
    assert replay.selected(timeline.kind == Kind.FREE).likely_s == 2 + 3 + 1 + 1
    assert replay.selected(np.arange(6) == 5).likely_s == 1  # nothing reuses its memory


def test_doing_without_a_needed_wait_keeps_the_order_of_streams() -> None:
    calls = [
        Call(Action.ENQUEUE, Kind.LAUNCH, gpu=5, stream=1),
        Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, stream=1, gap=1),
        Call(Action.ENQUEUE, Kind.LAUNCH, gpu=4, gap=3, stream=2),
        wait(problem=Problem.NONE),
    ]
    replay = exact(seconds(calls))
    assert replay.selected(np.arange(4) == 1).likely_s == 0  # it is not a problem
    # The second kernel still starts after the first, at 5 s instead of 6 s.
    assert replay.without(np.arange(4) == 1).likely_s == 1


def two_threads(process_of_thread: list[int], first: list[Call], second: list[Call]) -> tuple[Timeline, DeviceWork]:
    """Two traces in parallel, each on its own streams."""
    parts = [traced(seconds(calls)) for calls in (first, second)]
    processes = max(process_of_thread) + 1
    columns = {
        field.name: np.concatenate([getattr(timeline, field.name) for timeline, _, _ in parts])
        for field in dataclasses.fields(Timeline)
    }
    columns["thread"] = np.repeat(np.arange(2, dtype=np.int32), [len(first), len(second)])
    works = [work for _, work, _ in parts]
    shifted = [np.where(work.stream >= 0, work.stream + number, -1) for number, work in enumerate(works)]
    legacy = [process_of_thread.index(one) if one in process_of_thread else -1 for one in range(processes)]
    legacy = legacy if processes > 1 else [-1]
    work = DeviceWork(
        action=np.concatenate([work.action for work in works]),
        stream=np.concatenate(shifted).astype(np.int32),
        event=np.concatenate([work.event for work in works]),
        partner=np.concatenate([work.partner for work in works]),
        copied=np.concatenate([work.copied for work in works]),
        after_wait=np.concatenate([work.behind for work in works]),
        measured=np.concatenate([work.measured for work in works]),
        process_of_thread=np.array(process_of_thread, np.int32),
        legacy=np.array(legacy, np.int32),
        stream_process=np.array(process_of_thread, np.int32),
        events=0,
    )
    return Timeline(**columns), work


def test_a_run_of_several_processes_saves_what_the_slowest_saves() -> None:
    """Rank 0 could save 5 s, rank 1 only 2 s: they end together, so the savings do not add up."""
    first = [launch(5), wait(gap=9), wait(problem=Problem.NONE)]
    second = [launch(2), wait(gap=12), wait(problem=Problem.NONE)]
    gpu = np.array([5, 0, 0, 2, 0, 0], np.int64) * SECOND
    for processes in ([0, 1], [0, 2]):  # or one in between makes no call
        timeline, work = two_threads(processes, first, second)
        found = Replay(timeline, work, given_gpu_times(timeline, work, gpu)).selected(np.ones(6, bool))
        assert (found.likely_s, found.high_s) == (2, 5)


def load(own: int, gap: int = 0) -> Call:
    return Call(Action.LOAD, Kind.OTHER, own=own, gap=gap)


def load_and_launch(own: int, gpu: int) -> Call:
    return Call(Action.LOAD_AND_ENQUEUE, Kind.LAUNCH, own=own, gpu=gpu)


@pytest.mark.parametrize(("calls", "likely", "most"), [
    # Without the first wait, the kernel would run on while code is loaded, if that does not wait for it.
    ([launch(10), wait(), load(4), launch(5), wait(problem=Problem.NONE)], 0, 4),
    # Before the code is loaded, the CPU works: that saves its time.
    ([launch(10), wait(gap=3), load(4), launch(5), wait(problem=Problem.NONE)], 3, 7),
    # Code that was loaded while the kernel ran still is.
    ([launch(3), wait(gap=2), launch(10), load(4), wait(problem=Problem.NONE)], 2, 2),
    # Nothing is left to wait for.
    ([launch(2), wait(gap=3), load(4), launch(5), wait(problem=Problem.NONE)], 2, 2),
    # A launch that loads its kernel's code is a call of the CPU, which may wait for the GPU as well.
    ([launch(10), wait(), load_and_launch(4, 5), wait(problem=Problem.NONE)], 0, 4),
    ([launch(10), wait(gap=3), load_and_launch(4, 5), wait(problem=Problem.NONE)], 3, 7),
])  # fmt: skip
def test_loading_code_overlaps_with_no_more_work_than_it_did(calls: list[Call], likely: int, most: int) -> None:
    found = exact(seconds(calls)).selected(np.ones(len(calls), bool))
    assert (found.likely_s, found.low_s, found.high_s) == (likely, likely, most)


@given(programs(streams=2), st.data())
@settings(max_examples=examples(100), deadline=None)
def test_calls_that_may_wait_as_they_load_code_save_no_more(calls: list[Call], data: st.DataObject) -> None:
    fixed = np.array([data.draw(st.booleans()) for _ in calls], bool)
    loads = {Kind.OTHER: Action.LOAD, Kind.LAUNCH: Action.LOAD_AND_ENQUEUE}
    loading = [
        dataclasses.replace(call, action=loads[call.kind]) if call.kind in loads and call.event < 0 else call
        for call in calls
    ]
    found, otherwise = exact(loading).selected(fixed), exact(calls).selected(fixed)
    assert 0 <= found.likely_s <= otherwise.likely_s
    assert found.high_s == otherwise.high_s


WAITING = [
    Call(Action.NONE, Kind.OTHER, own=3),
    Call(Action.ENQUEUE, Kind.LAUNCH, gpu=5),
    Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, gap=9, problem=SYNC),
    Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION),
]
"""A thread that could save 5 of 17 seconds."""


def of_threads(*members: tuple[list[Call], int]) -> Replay:
    """Threads that a first thread starts and joins in one gap, each with the site of its only problem."""
    starting = [Call(Action.NONE, Kind.OTHER, own=1), Call(Action.NONE, Kind.OTHER, own=1, gap=1)]
    started = [Member(0, SECOND, seconds(calls), within=0) for calls, _ in members]
    timeline, work, gpu = traced_together([Member(0, 0, seconds(starting)), *started])
    # All are started before any is joined.
    places = [np.flatnonzero(timeline.thread == number + 1) for number in range(len(members))]
    for rows, (_, site) in zip(places, members, strict=True):
        timeline.start[rows] += timeline.start[places[0][0]] - timeline.start[rows[0]]
        timeline.site[rows] = site
    timeline.site[:2] = 100
    return Replay(timeline, work, given_gpu_times(timeline, work, gpu))


def test_a_thread_that_another_started_and_joined_lets_it_end_earlier() -> None:
    replay = of_threads((WAITING, 1))
    assert replay.selected(np.ones(6, bool)).likely_s == 5


def test_of_joined_threads_that_run_the_same_code_the_last_to_end_counts() -> None:
    slower = [dataclasses.replace(call, gpu=2 if call.gpu else 0, gap=12 if call.gap else 0) for call in WAITING]
    replay = of_threads((WAITING, 1), (slower, 1))
    assert replay.selected(np.ones(10, bool)).likely_s == 2


def test_threads_that_do_different_things_wait_for_the_one_that_becomes_faster() -> None:
    """Whether the other one, which can save less, is fixed too or not."""
    slower = [dataclasses.replace(call, gpu=2 if call.gpu else 0, gap=12 if call.gap else 0) for call in WAITING]
    replay = of_threads((WAITING, 1), (slower, 2))
    assert replay.selected(replay._timeline.site == 1).likely_s == 5
    assert replay.selected(np.ones(10, bool)).likely_s == 5


def test_threads_without_calls_change_nothing() -> None:
    """A process whose first and last threads called nothing saves what it saves with the calling thread alone."""
    timeline, work, gpu = traced(seconds([launch(1), wait(gap=5), wait(problem=Problem.NONE)] * 4))
    timeline = dataclasses.replace(timeline, thread=timeline.thread + np.int32(1))
    work = dataclasses.replace(work, process_of_thread=np.zeros(3, np.int32))
    found = Replay(timeline, work, given_gpu_times(timeline, work, gpu)).selected(np.ones(len(timeline), bool))
    assert found.likely_s == 4


def test_a_program_without_calls_saves_nothing() -> None:
    timeline, work, _ = traced([])
    found = Replay(timeline, work, infer_gpu_times(timeline, work)).selected(np.zeros(0, bool))
    assert (found.likely_s, found.low_s, found.high_s) == (0, 0, 0)


@given(programs(streams=2).filter(bool), st.data())
@settings(max_examples=examples(200), deadline=None)
def test_disjoint_groups_of_waits_never_add_up_to_more_than_the_run(calls: list[Call], data: st.DataObject) -> None:
    """Each second of the run is in a wait of at most one of them. That of a transfer is in later waits for it too."""
    timeline, work, _gpu = traced(calls)
    groups = 3
    label = np.array(
        [data.draw(st.integers(-1, groups - 1)) if call.problem == SYNC else -1 for call in calls], np.int32
    )
    end = live(calls, [False] * len(calls)).end / SECOND
    for replay in (exact(calls), Replay(timeline, work, infer_gpu_times(timeline, work))):
        found = replay.by_group(label, np.arange(groups, dtype=np.int32), groups)
        assert sum(one.likely_s for one in found) <= end + 1e-9


def test_threads_that_are_joined_after_the_last_call_end_the_run() -> None:
    """The main thread makes one call, starts two others and joins them: no row comes after that."""
    turn = [
        Call(Action.ENQUEUE, Kind.LAUNCH, gpu=20_000, stream=1),
        Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, gap=50_000, stream=1, problem=SYNC),
    ]
    main = Member(0, 0, [Call(Action.NONE, Kind.OTHER, own=1_000)])
    timeline, work, gpu = traced_together([main, Member(0, 10_000, turn), Member(0, 500_000, turn)])
    nobody = np.full(3, -1, np.int64)
    lives = ThreadLives(
        before=np.array([-1, 1_000, 1_000]),
        parent=np.array([-1, 0, 0], np.int32),
        started=np.array([-1, 1, 1]),
        joined=nobody,
    )
    work = dataclasses.replace(work, lives=lives)
    found = Replay(timeline, work, given_gpu_times(timeline, work, gpu)).selected(np.ones(5, bool))
    assert 0 < found.low_s <= found.likely_s <= found.high_s


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 65535))
@settings(max_examples=examples(100), deadline=None)
def test_at_most_an_upload_of_few_bytes_does_all_but_copy_while_it_waits(gpu: int, own: int, copied: int) -> None:
    """Without the wait before it, the upload waits, and its own time may be over before."""
    calls = [
        Call(Action.ENQUEUE, Kind.LAUNCH, gpu=1000 * gpu),
        Call(Action.WAIT_STREAM, Kind.SYNCHRONIZATION, problem=SYNC),
        Call(Action.WAIT_AND_ENQUEUE, Kind.TRANSFER, own=1000 * own),
    ]
    timeline, work, times = traced(calls)
    most = min(1000 * gpu, max(1000 * own - copied // COPIED_BYTES_A_NANOSECOND, 0))
    for moved, saved in ((copied, most), (WORTH_TIMING_BYTES, 0)):
        sent = dataclasses.replace(work, copied=np.array([0, 0, moved]))
        found = Replay(timeline, sent, given_gpu_times(timeline, sent, times)).selected(np.array([False, True, False]))
        assert found.likely_s == 0
        assert found.high_s * SECOND == pytest.approx(saved, abs=1)
