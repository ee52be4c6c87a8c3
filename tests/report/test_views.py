"""Views contain what the analysis says, sorted and numbered as a reader needs it."""

from __future__ import annotations

import msgspec
import pytest

from ffm.errors import FfmError
from ffm.report.fold import fold
from ffm.report.formats.html import html
from ffm.report.overview import overview
from ffm.report.remedies.view import remedies_view
from ffm.report.sequence import sequence, subsequence
from ffm.report.site import site
from ffm.report.terminal.fold import render_fold
from ffm.report.terminal.overview import render_first_screen, render_overview
from ffm.report.terminal.remedies import render_remedies
from ffm.report.terminal.site import render_site
from ffm.results.documents.analysis import Analysis, FetchingWait, Group, KeptWait, SendingWait, TimingWait
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.site import Verdict
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.places import frame_place, place, told_apart
from ffm.results.vocabulary import Because
from tests.report.printed import text_of
from tests.report.sample_analysis import TEMPLATE, benefit, sample_analysis


def test_the_overview_hides_rows_below_a_tenth_of_a_percent_and_counts_them() -> None:
    view = overview(sample_analysis())
    assert [row.name for row in view.points.rows] == ["cudaFree als.cu:760", "cudaMemcpy als.cu:738"]
    assert view.points.hidden == 1
    everything = overview(sample_analysis(), show_all=True)
    assert len(everything.points.rows) == 3
    assert everything.points.hidden == 0


def test_waits_that_another_process_may_need_are_shown_with_their_cost() -> None:
    analysis = sample_analysis()
    waits = [KeptWait(site=2, occurrences=3, saving_s=1.5, low_s=0.25, high_s=1.75)]
    shared = msgspec.structs.replace(analysis, sharing=waits)
    view = overview(shared)
    for screen in (render_overview(view), render_first_screen(view), render_remedies(remedies_view(shared))):
        shown = " ".join(text_of(screen).split())
        assert "may be needed: device memory is shared with another process" in shown
        assert "calls may be needed; not waiting saves 1.500 s" in shown
    assert "may be needed" not in text_of(render_overview(overview(analysis)))


def test_waits_that_only_order_streams_are_shown_with_what_events_would_save() -> None:
    analysis = sample_analysis()
    waits = [KeptWait(site=2, occurrences=3, saving_s=1.5, low_s=0.25, high_s=1.75)]
    ordering = msgspec.structs.replace(analysis, ordering=waits)
    view = overview(ordering)
    page = html(ordering, "carry", None)
    for screen in (render_overview(view), render_first_screen(view), render_remedies(remedies_view(ordering))):
        shown = " ".join(text_of(screen).split())
        assert "Waits that events could replace" in shown
        assert "calls only order streams; not waiting saves 1.500 s (0.15 %), 0.250 s to 1.750 s" in shown
    assert "calls only order streams" in page
    assert "events could replace" not in text_of(render_overview(overview(analysis)))


def test_values_that_are_fetched_again_and_again_are_shown_with_what_is_proved_and_what_is_not() -> None:
    analysis = sample_analysis()
    waits = [FetchingWait(site=2, occurrences=3, watched=True, saving_s=1.5, low_s=0.25, high_s=1.75)]
    fetching = msgspec.structs.replace(analysis, fetching=waits)
    view = overview(fetching)
    for screen in (render_overview(view), render_first_screen(view), render_remedies(remedies_view(fetching))):
        shown = " ".join(text_of(screen).split())
        assert "Values that the CPU fetches again and again" in shown
        assert "calls wait for what the CPU then uses; not waiting saves 1.500 s (0.15 %), 0.250 s to 1.750 s" in shown
        assert "What it does with the values is not known." in shown
    assert "If an <code>if</code> or <code>while</code> depends on a value" in html(fetching, "carry", None)
    assert "again and again" not in text_of(render_overview(overview(analysis)))


def in_pytorch(function: str) -> Analysis:
    """Return an analysis whose calls a compiled function of PyTorch makes, for a line of Python."""
    analysis = sample_analysis()
    frames = [
        Frame(module=0, offset=1, function="cudaStreamSynchronize"),
        Frame(module=1, offset=1, function=function),
        Frame(module=0, offset=0, function="step", file="/home/me/train.py", line=7, python=True),
    ]
    paths = ("/usr/lib/libcudart.so.13", "/env/site-packages/torch/lib/libtorch_cuda.so")
    return msgspec.structs.replace(
        analysis,
        modules=[Module(path=path, build_id="") for path in paths],
        stacks=[msgspec.structs.replace(stack, frames=frames) for stack in analysis.stacks],
    )


@pytest.mark.parametrize(("function", "listed"), [("at::native::copy_kernel_cuda", True), ("wait", False)])
def test_uploads_for_which_a_packages_copies_wait_are_shown(function: str, listed: bool) -> None:
    """A wait that the script asks for may be there for something else."""
    waits = [SendingWait(site=0, occurrences=3, pageable=False, saving_s=1.5, low_s=0.25, high_s=1.75)]
    changed = msgspec.structs.replace(in_pytorch(function), sending=waits)
    for screen in (render_overview(overview(changed)), render_remedies(remedies_view(changed))):
        shown = " ".join(text_of(screen).split())
        assert ("calls wait for an upload from pinned memory; not waiting saves 1.500 s" in shown) is listed
        assert ('In PyTorch: tensor.to("cuda", non_blocking=True)' in shown) is listed
    assert ("Uploads that the CPU waits for" in html(changed, "carry", None)) is listed


@pytest.mark.parametrize(("function", "listed"), [("at::native::_local_scalar_dense_cuda", True), ("wait", False)])
def test_values_whose_use_was_not_watched_are_fetched_by_copies(function: str, listed: bool) -> None:
    fetching = [FetchingWait(site=0, occurrences=3, watched=False, saving_s=1.5, low_s=0.25, high_s=1.75)]
    changed = msgspec.structs.replace(in_pytorch(function), fetching=fetching)
    shown = " ".join(text_of(render_overview(overview(changed))).split())
    assert ("calls wait for values whose use could not be watched; not waiting saves 1.500 s" in shown) is listed
    assert ("In PyTorch: total += loss.detach()" in shown) is listed


def test_a_wait_covered_by_a_later_call_of_the_same_site_is_not_conditional_on_itself() -> None:
    analysis = sample_analysis()
    sites = list(analysis.sites)
    covered = Verdict(kind="conditionally unnecessary", occurrences=3, because=Because.LATER_COVERS, keep=0)
    sites[0] = msgspec.structs.replace(sites[0], synchronization=[covered])
    changed = msgspec.structs.replace(analysis, sites=sites)
    page = html(changed, "carry", None)
    for shown in (" ".join(text_of(render_site(site(changed, 1))).split()), " ".join(page.split())):
        assert "is first used after a later call here, which also waits for it: the last of these calls must" in shown
    assert "which must then stay" not in text_of(render_site(site(changed, 1)))


@pytest.mark.parametrize(("call", "kind", "inside"), [
    ("cudaDeviceSynchronize", "synchronization", False),
    ("clFinish", "synchronization", False),
    ("cudaFree", "free", True),
    ("make_synchronized_copy", "transfer", True),
])  # fmt: skip
def test_a_wait_is_a_synchronization_or_inside_a_call(call: str, kind: str, inside: bool) -> None:
    analysis = sample_analysis()
    site = msgspec.structs.replace(analysis.sites[0], call=call, kind=kind)
    where = place(msgspec.structs.replace(analysis, sites=[site]), 0)
    assert where.wait == (f"the one inside {where}" if inside else str(where))


def test_the_first_screen_shows_the_costliest_waits_for_timing_and_counts_the_others() -> None:
    analysis = sample_analysis()
    timed = msgspec.structs.replace(analysis, timing=[timing_wait(1.0)] * 11)
    shown = " ".join(text_of(render_first_screen(overview(timed))).split())
    assert shown.count("needed only for timing") == 8
    assert "and 3 more If the program measured no times" in shown
    assert "Waits for timing" not in text_of(render_first_screen(overview(analysis)))


def test_waits_for_timing_that_cost_little_are_counted_or_where_all_do_left_out() -> None:
    analysis = sample_analysis()  # of 1,000 s; any two runs differ by 1 %
    some = msgspec.structs.replace(analysis, timing=[timing_wait(1.0), timing_wait(0.5, 10.9), timing_wait(0.5, 11.1)])
    none = msgspec.structs.replace(analysis, timing=[timing_wait(0.5)])
    for one, shown, hidden, more in (
        (some, 2, 1, "1 place hidden (see --all): it saves at most 1.10 %, and runs differ by 1 %"),
        (none, 0, 1, ""),
    ):
        view, remedies = overview(one), remedies_view(one)
        for costly in (view.costly_waits, remedies.costly_waits):
            assert (len(costly.timing), costly.timing_hidden) == (shown, hidden)
        for screen in (render_overview(view), render_remedies(remedies)):
            text = " ".join(text_of(screen).split())
            assert text.count("needed only for timing") == shown
            assert ("Waits for timing" in text) == bool(shown)
            assert more in text
        assert len(overview(one, show_all=True).costly_waits.timing) == shown + hidden


def timing_wait(saving_s: float, high_s: float | None = None) -> TimingWait:
    """A site whose waits are needed only for timing."""
    most = saving_s if high_s is None else high_s
    return TimingWait(site=2, occurrences=3, certain=True, saving_s=saving_s, low_s=0.25, high_s=most)


def test_the_first_screen_counts_rows_where_all_are_hidden() -> None:
    analysis = sample_analysis()
    small = [msgspec.structs.replace(one, benefit=benefit(1e-9, 1e-9)) for one in analysis.folds]
    view = overview(msgspec.structs.replace(analysis, folds=small))
    folds = text_of(render_first_screen(view)).partition("Folds")[2].partition("Sequences")[0]
    assert f"{len(small)} rows hidden (see --all): they save less than 0.10 % of the run" in folds
    assert "none" not in folds


def test_a_traced_run_that_waited_longer_for_a_processor_is_a_reason_for_low_intervals() -> None:
    analysis = sample_analysis()
    for delayed_s, told in ((9.0, False), (17.0, True)):  # of 1,000 s
        costs = [
            msgspec.structs.replace(cost, delayed_s=delayed_s if cost.stage == "tracing" else 2.0)
            for cost in analysis.costs
        ]
        delayed = msgspec.structs.replace(analysis, costs=costs, wall_s=1000.0)
        notes = [note for note in overview(delayed).notes if "waited for a processor" in note]
        assert [("15.000 s longer" in note) for note in notes] == [True] * told


def test_rows_are_sorted_by_the_chosen_estimator() -> None:
    analysis = sample_analysis()
    analysis = msgspec.structs.replace(
        analysis,
        folds=[msgspec.structs.replace(analysis.folds[1], benefit=benefit(1.5, 99.0)), analysis.folds[0]],
    )
    assert [row.name for row in overview(analysis, "carry").folds.rows] == ["cudaFree", "cudaMemcpy"]
    assert [row.name for row in overview(analysis, "bound").folds.rows] == ["cudaMemcpy", "cudaFree"]


def test_every_row_names_the_command_that_opens_it() -> None:
    view = overview(sample_analysis(), show_all=True)
    assert [row.command for row in view.folds.rows] == ["ffm fold cudaFree", "ffm fold cudaMemcpy"]
    assert [row.command for row in view.sequences.rows] == ["ffm sequence 1"]
    assert [row.command for row in view.points.rows] == ["ffm site 1", "ffm site 2", "ffm site 3"]


def test_a_sequence_counts_its_problems_and_names_what_must_stay() -> None:
    view = sequence(sample_analysis(), 1)
    assert [(op.number, op.where.call, op.where.place) for op in view.operations] == [
        (1, "cudaMemcpy", "als.cu:738"),
        (2, "cudaFree", "als.cu:760"),
        (3, "cudaFree", "als+0x1120"),
    ]
    assert (view.synchronization_problems, view.transfer_problems) == (3, 1)
    assert view.saving.carry_s == 12.5
    assert [where.place for where in view.keep] == ["als.cu:150"]
    assert view.ends_at is not None and view.ends_at.call == "cudaDeviceSynchronize"
    assert [reason.operations for reason in view.reasons] == [[1, 2], [1], [3]]
    assert (view.reasons[0].finding.occurrences, view.reasons[0].finding.of) == (10000, 10000)


def test_a_subsequence_keeps_the_numbers_of_its_sequence() -> None:
    view = subsequence(sample_analysis(), 1, 2, 3, benefit(7.0, 8.0), "bound")
    assert [operation.number for operation in view.operations] == [2, 3]
    assert (view.part, view.operations_in_sequence) == ((2, 3), 3)
    assert (view.saving.carry_s, view.saving.bound_s) == (7.0, 8.0)
    assert (view.synchronization_problems, view.transfer_problems) == (2, 0)


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [(3, 2, "must not be greater"), (0, 2, "operations 1 to 3"), (1, 4, "operations 1 to 3")],
)
def test_a_part_that_is_none_is_refused(start: int, end: int, message: str) -> None:
    with pytest.raises(FfmError, match=message):
        subsequence(sample_analysis(), 1, start, end, benefit(0, 0))


def test_a_sequence_that_is_none_is_refused() -> None:
    with pytest.raises(FfmError, match="als has no sequence 2: there is only sequence 1"):
        sequence(sample_analysis(), 2)
    without = msgspec.structs.replace(sample_analysis(), sequences=[])
    with pytest.raises(FfmError, match="no sequence of unnecessary operations"):
        sequence(without, 1)


def test_a_fold_is_expanded_with_the_most_expensive_function_first() -> None:
    view = fold(sample_analysis(), "cudaFree", show_all=True)
    assert [part.name for part in view.parts] == [
        "doALS",
        "thrust::detail::contiguous_storage<...>::deallocate",
    ]
    assert [[entry.where.site for entry in part.sites] for part in view.parts] == [[1], [3]]
    assert view.parts[1].conditional
    assert [where.site for where in view.keep] == [4]


def test_a_function_stays_in_a_fold_whose_sites_are_all_too_small_for_a_row() -> None:
    analysis = sample_analysis()
    small = [msgspec.structs.replace(one, benefit=benefit(0.6, 0.6)) for one in analysis.sites]
    free = analysis.folds[0]
    part = msgspec.structs.replace(free.parts[1], sites=[0, 2], benefit=benefit(1.2, 1.2))
    analysis = msgspec.structs.replace(
        analysis, sites=small, folds=[msgspec.structs.replace(free, parts=[part], benefit=benefit(1.2, 1.2))]
    )
    view = fold(analysis, "cudaFree")
    assert ([(one.name, one.sites) for one in view.parts], view.hidden) == ([("doALS", [])], 2)
    assert "2 sites hidden (see --all)" in text_of(render_fold(view))
    none = msgspec.structs.replace(analysis, folds=[msgspec.structs.replace(free, parts=[free.parts[0]])])
    assert "1 site hidden (see --all)" in text_of(render_fold(fold(none, "cudaFree")))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cudaFre", "did you mean cudaFree"),
        ("Memcpy", "did you mean cudaMemcpy"),
        ("zzz", "its folds are cudaFree, cuda"),
    ],
)
def test_an_unknown_fold_offers_similar_names(name: str, message: str) -> None:
    with pytest.raises(FfmError, match=message):
        fold(sample_analysis(), name)


def test_a_fold_is_found_whatever_its_case() -> None:
    assert fold(sample_analysis(), "CUDAfree").name == "cudaFree"


def test_a_site_shows_its_whole_stack_and_its_verdicts() -> None:
    view = site(sample_analysis(), 3)
    assert [(frame.function, frame.place, frame.inlined) for frame in view.stack] == [
        ("cudaFree", "libcudart.so.13+0x41f0", False),
        ("release", "als+0x1120", True),
        (TEMPLATE, "als+0x1120", False),
        ("main", "main.cpp:146", False),
    ]
    assert [(found.verdict, found.keep and found.keep.site) for found in view.findings] == [
        ("conditionally unnecessary", 4)
    ]
    assert view.sequences == [1]


@pytest.mark.parametrize("number", [0, 5])
def test_a_site_that_is_none_is_refused(number: int) -> None:
    with pytest.raises(FfmError, match="numbered 1 to 4"):
        site(sample_analysis(), number)


def test_rows_of_which_the_table_shows_nothing_are_hidden_whatever_the_other_estimators_say() -> None:
    def worth(replay: float, high: float) -> Benefit:
        return Benefit(carry_s=9.0, bound_s=9.0, replay_s=replay, low_s=0.0, high_s=high)

    analysis = sample_analysis()
    kinds = worth(5.0, 6.0), worth(0.0, 0.02 * analysis.wall_s), worth(0.5, 0.6)
    groups = [msgspec.structs.replace(group, benefit=kind) for group, kind in zip(analysis.points, kinds, strict=True)]
    analysis = msgspec.structs.replace(analysis, points=groups, estimator="replay")
    by_replay, by_carry = overview(analysis, "replay").points, overview(analysis, "carry").points
    assert ([row.number for row in by_replay.rows], by_replay.hidden) == ([1, 2], 1)
    assert (len(by_carry.rows), by_carry.hidden) == (3, 0)


def test_a_private_wait_and_memory_outside_of_the_driver_are_called_so() -> None:
    analysis = sample_analysis()
    private = msgspec.structs.replace(analysis.sites[3], function="private", kind="private")
    outside = msgspec.structs.replace(analysis.sites[0], function="malloc", call="malloc", kind="other", count=0)
    analysis = msgspec.structs.replace(analysis, sites=[outside, *analysis.sites[1:3], private])
    assert "a wait in a private call of the driver" in text_of(render_site(site(analysis, 4)))
    shown = text_of(render_site(site(analysis, 1)), 200)
    assert "host memory of transfers is allocated or freed here" in shown
    assert "Saving" not in shown and "calls" not in shown
    assert "main at main.cpp:146" in shown


def test_a_remedy_says_between_what_its_saving_lies() -> None:
    analysis = sample_analysis()
    told = Benefit(carry_s=9.0, bound_s=9.0, replay_s=5.0, low_s=4.0, high_s=6.5)
    sites = [msgspec.structs.replace(analysis.sites[0], benefit=told), *analysis.sites[1:]]
    analysis = msgspec.structs.replace(analysis, sites=sites, estimator="replay")
    shown = " ".join(text_of(render_remedies(remedies_view(analysis))).split())
    assert "saves 5.000 s (0.50 %) by itself, at least 4.000 s, at most 6.500 s; 5,000 of 5,000 calls" in shown
    nothing = msgspec.structs.replace(
        analysis, sites=[msgspec.structs.replace(one, problem_count=0) for one in analysis.sites]
    )
    assert "No unnecessary or misplaced synchronization" in text_of(render_remedies(remedies_view(nothing)))


def test_sites_at_the_same_place_say_where_they_are_reached_from() -> None:
    """Three call paths into one template: two from other lines of the program, one indistinguishable from the first."""
    analysis = sample_analysis()

    def reached(line: int, key: str) -> Stack:
        frames = [
            Frame(module=1, offset=1, function="cudaFree"),
            Frame(module=0, offset=2, function="release", file="/src/memory.h", line=35),
            Frame(module=0, offset=3, function="~vector", file="/src/vector.h", line=8),
            Frame(module=0, offset=line, function="solve", file="/src/solve.cu", line=line),
            Frame(module=0, offset=5, function="main", file="/src/main.cpp", line=146),
        ]
        return Stack(key=key, frames=frames)

    sites = [
        msgspec.structs.replace(analysis.sites[0], file="/src/memory.h", line=35, stack=number, problem_count=5000)
        for number in range(3)
    ]
    analysis = msgspec.structs.replace(
        analysis,
        stacks=[reached(10, "a"), reached(20, "b"), reached(10, "c"), *analysis.stacks[3:]],
        sites=[*sites, analysis.sites[3]],
        points=[
            Group(name="cudaFree", sites=[number], count=1, benefit=benefit(3.0, 3.0), conditional=False)
            for number in range(3)
        ],
    )
    expected = [f" from solve.cu:{line}" for line in (10, 20, 10)]
    rows = overview(analysis, show_all=True).points.rows
    assert [row.name for row in rows] == [f"cudaFree memory.h:35{end}" for end in expected]
    assert [remedy.reached for remedy in remedies_view(analysis).remedies] == expected
    assert "1. cudaFree at memory.h:35 from solve.cu:10 (site 1): " in text_of(render_remedies(remedies_view(analysis)))
    assert told_apart(analysis, [0, 2]) == {}
    assert told_apart(analysis, [0]) == {}
    stacks = analysis.stacks
    stacks[2].frames[-1] = msgspec.structs.replace(stacks[2].frames[-1], line=150)
    assert told_apart(analysis, range(3)) == {
        0: " from solve.cu:10 < main.cpp:146",
        1: " from solve.cu:20 < main.cpp:146",
        2: " from solve.cu:10 < main.cpp:150",
    }
    starts = Frame(module=1, offset=7, function="__libc_start_call_main", file="/glibc/start.h", line=58)
    for stack in stacks[:3]:
        stack.frames.append(starts)
    del stacks[1].frames[2]
    assert told_apart(analysis, range(3)) == {0: " from main.cpp:146", 2: " from main.cpp:150"}


def test_a_file_that_nvcc_made_is_named_as_the_programmer_knows_it() -> None:
    analysis = sample_analysis()
    made = Frame(module=0, offset=1, function="f", file="/tmp/tmpxft_0002152b_00000000-5_als.cudafe1.cpp", line=99)
    assert frame_place(analysis, made) == "als.cu:99"
