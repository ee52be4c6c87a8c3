"""What `ffm path` says of a small program whose path is known."""

from __future__ import annotations

import dataclasses
from io import StringIO
from pathlib import Path
from typing import NoReturn

import msgspec
import numpy as np
import pytest
from rich.console import Console

from ffm.errors import FfmError
from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.pauses import PAUSE_NS
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.report.overview import overview
from ffm.report.terminal.path import render_path
from ffm.report.waiting.changes import change_view
from ffm.report.waiting.path import PathView, fixed_view, path_view
from ffm.report.waiting.region import RegionBounds, region_view
from ffm.report.waiting.shares import in_one_line
from ffm.results.documents.analysis import StageCost
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.documents.waiting import GuessedWork
from ffm.results.stored import Results, open_results
from ffm.results.waiting.run_path import stored_waiting
from ffm.stages.analysis.findings import Findings, SiteDescription
from ffm.stages.analysis.results import write_results
from tests.model.simulator import Call, Member, traced, traced_together

MS = 1_000_000
TIMES = 10
PAUSES_S = (TIMES + 1) * PAUSE_NS / 1e9
"""More than the GPU's pauses take where each turn queues one piece of work behind another."""


def frames(*lines: tuple[str, int], call: str) -> list[Frame]:
    """A stack of the program's functions, innermost first, below a call of the runtime."""
    own = [Frame(module=0, offset=line, function=name, file="/src/als.cu", line=line) for name, line in lines]
    return [Frame(module=1, offset=1, function=call), *own]


def stored(
    timeline: Timeline, work: DeviceWork, stacks: list[list[Frame]], functions: list[str], folder: Path
) -> Results:
    """Store a run of which each site has a stack and a function."""
    write_results(
        Findings(
            application="als",
            command=["./als"],
            wall_s=0.1,
            timeline=timeline,
            sites=[SiteDescription(number, function) for number, function in enumerate(functions)],
            stacks=[Stack(key=f"{number:032x}", frames=stack) for number, stack in enumerate(stacks)],
            modules=[Module(path="/bin/als", build_id="aa"), Module(path="/lib/libcudart.so", build_id="bb")],
            work=work,
        ),
        folder,
    )
    return open_results(folder)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Ten times: a kernel of 6 ms beside 2 ms of the CPU, a wait, a download of 1 ms, and 3 ms of the CPU."""
    once = [
        Call(Action.ENQUEUE, Kind.LAUNCH, gpu=6 * MS, gap=2 * MS),
        Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION),
        Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, gpu=MS, gap=3 * MS),
    ]
    timeline, work, gpu = traced(once * TIMES)
    object.__setattr__(timeline, "site", np.tile(np.arange(3, dtype=np.int32), TIMES))
    object.__setattr__(work, "measured", np.where(gpu > 0, gpu, -1))
    object.__setattr__(work, "began", np.where(gpu > 0, timeline.start, -1))
    stub = "__device_stub__Z5solvePf(float*)"
    launch = [
        Frame(module=1, offset=1, function="cudaLaunchKernel"),
        Frame(module=0, offset=5, function=stub),
        Frame(module=0, offset=6, function="solve(float*)", file="/src/als.cu", line=9),
        *frames(("step", 20), ("main", 50), call="")[1:],
    ]
    stacks = [
        launch,
        frames(("step", 24), ("main", 50), call="cudaDeviceSynchronize"),
        frames(("read", 70), ("main", 51), call="cudaMemcpy"),
    ]
    functions = ["cuLaunchKernel", "cuCtxSynchronize", "cuMemcpyDtoH_v2"]
    return stored(timeline, work, stacks, functions, tmp_path)


@pytest.fixture
def view(results: Results) -> PathView:
    return path_view(results)


def test_the_shares_add_up_to_the_run(view: PathView) -> None:
    shares = {share.name: share.seconds for share in view.shares if share.seconds}
    assert shares == pytest.approx({"CPU": 0.030, "kernels": 0.060, "transfers": 0.010})
    assert view.length_s == pytest.approx(0.1)
    assert sum(share.percent for share in view.shares) == pytest.approx(100)
    assert view.agreed_percent is None


def test_regions_have_their_seconds_on_the_path(view: PathView) -> None:
    regions = {(row.kind, row.name, row.place): (row.count, row.path_s) for row in view.regions}
    assert regions == {
        ("kernel", "solve", "als.cu:20"): (TIMES, pytest.approx(0.060)),
        ("CPU", "main", "als.cu:50-51"): (TIMES - 1, pytest.approx(0.027)),
        ("transfer", "cudaMemcpy", "als.cu:70"): (TIMES, pytest.approx(0.010)),
        ("CPU", "after the last call", ""): (1, pytest.approx(0.003)),
    }
    assert [row.number for row in view.regions] == [1, 2, 3, 4]


def test_cpu_work_beside_the_path_is_a_region_too(results: Results) -> None:
    rows = {(row.name, row.place): row for row in path_view(results, show_all=True).regions if row.kind == "CPU"}
    beside = rows["step", "als.cu:20-24"]
    assert (beside.count, beside.path_s) == (TIMES, 0)
    assert beside.total_s == pytest.approx(0.020)


def test_blame_is_told_with_the_regions(view: PathView) -> None:
    """Of each kernel's 6 ms the CPU waits for 4, and for each download's millisecond; the GPU then idles for 3 ms."""
    assert [(row.name, round(row.blamed_s, 6)) for row in view.waited_for] == [("solve", 0.04), ("cudaMemcpy", 0.01)]
    assert [(row.name, round(row.blamed_s, 6)) for row in view.idle_for] == [("main", 0.027)]


def test_a_faster_region_saves_what_the_wait_leaves(results: Results) -> None:
    """A kernel of 3 ms still ends after the 2 ms of the CPU beside it; one of 1 ms would not."""
    assert change_view(results, ["kernel solve=2x"]).gain.seconds == pytest.approx(0.030)
    assert change_view(results, ["solve=6x"]).gain.seconds == pytest.approx(0.040, abs=PAUSES_S)
    assert change_view(results, ["solve=gone"]).gain.seconds == pytest.approx(0.040, abs=PAUSES_S)
    assert change_view(results, ["als.cu:20-24=2x"]).gain.seconds == pytest.approx(0.0, abs=1e-9)
    together = change_view(results, ["solve=6x", "als.cu:20-24=gone"])
    assert together.gain.seconds == pytest.approx(0.050)
    assert change_view(results, ["GPU=2x"]).gain.seconds == pytest.approx(0.035, abs=PAUSES_S)


def test_what_the_document_says_of_regions_is_not_found_again(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is to blame takes longest to find, and neither a faster region nor the screen of one asks for it."""

    def refused(*_: object) -> NoReturn:
        raise AssertionError("blame was found again")

    monkeypatch.setattr("ffm.results.waiting.regions.find_blame", refused)
    assert change_view(results, ["kernel solve=2x"]).gain.seconds == pytest.approx(0.030)
    assert region_view(results, "kernel solve").region.blamed_s == pytest.approx(0.04)


def write_small(calls: list[Call], stacks: list[list[Frame]], functions: list[str], folder: Path) -> Results:
    """Store a run in which each call has a stack of its own."""
    timeline, work, gpu = traced(calls)
    object.__setattr__(timeline, "site", np.arange(len(calls), dtype=np.int32))
    object.__setattr__(work, "measured", np.where(gpu > 0, gpu, -1))
    object.__setattr__(work, "began", np.where(gpu > 0, timeline.start + (timeline.duration - timeline.wait), -1))
    return stored(timeline, work, stacks, functions, folder)


def test_a_call_that_is_gone_waits_for_nothing(tmp_path: Path) -> None:
    """A kernel of 6 ms beside 2 ms of the CPU, then a wait and a download of 1 ms; each call takes 1 ms itself."""
    calls = [
        Call(Action.ENQUEUE, Kind.LAUNCH, own=MS, gpu=6 * MS, gap=2 * MS),
        Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, own=MS),
        Call(Action.ENQUEUE_AND_WAIT, Kind.TRANSFER, own=MS, gpu=MS, gap=3 * MS),
    ]
    names = ("cudaLaunchKernel", "cudaDeviceSynchronize", "cudaMemcpy")
    stacks = [frames(("step", 20 + number), call=name) for number, name in enumerate(names)]
    results = write_small(calls, stacks, ["cuLaunchKernel", "cuCtxSynchronize", "cuMemcpyDtoH_v2"], tmp_path)

    def saving(*changes: str) -> float:
        return change_view(results, changes).gain.seconds

    assert saving("call cudaMemcpy=gone") == pytest.approx(0.001)
    assert saving("cudaMemcpy als.cu:22=gone") == pytest.approx(0.002)
    # The download then waits for the kernel, and the pause after it.
    assert saving("cudaDeviceSynchronize=gone") == pytest.approx(0.002 - PAUSE_NS / 1e9)
    assert saving("cudaDeviceSynchronize=gone", "cudaMemcpy als.cu:22=gone") == pytest.approx(0.007)


def test_the_callers_of_inlined_functions_are_told_apart_by_lines(tmp_path: Path) -> None:
    """An inlined function's address is that of the call in it, and so is the one of the function around it."""

    def inlined(line: int, call: str) -> list[Frame]:
        return [
            Frame(module=1, offset=1, function=call),
            Frame(module=0, offset=line, function="step", file="/src/als.cu", line=line, inlined=True),
            Frame(module=0, offset=line, function="main", file="/src/als.cu", line=50),
        ]

    calls = [
        Call(Action.ENQUEUE, Kind.LAUNCH, gpu=MS, gap=2 * MS),
        Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, gap=MS),
    ]
    stacks = [inlined(20, "cudaLaunchKernel"), inlined(24, "cudaDeviceSynchronize")]
    results = write_small(calls, stacks, ["cuLaunchKernel", "cuCtxSynchronize"], tmp_path)
    regions = path_view(results, show_all=True).regions
    assert ("step", "als.cu:20-24") in {(row.name, row.place) for row in regions if row.kind == "CPU"}


def test_an_answer_has_an_interval_with_the_differences_between_runs(results: Results) -> None:
    gain = change_view(results, ["solve=2x"]).gain
    assert gain.low_s < gain.seconds < gain.high_s


def test_runs_that_differ_widen_an_answer_as_they_widen_a_saving(results: Results) -> None:
    """What differs between runs is no part of what a faster kernel saves: it saves more or less in proportion."""
    costs = [
        StageCost(stage=stage, wall_s=wall_s, ratio=1.0) for stage, wall_s in (("baseline", 1.0), ("tracing", 1.3))
    ]
    noisy = Results(results.folder, msgspec.structs.replace(results.document, wall_s=1.0, costs=costs))
    gain = change_view(noisy, ["solve=2x"]).gain
    assert gain.seconds == pytest.approx(0.030)
    assert 0.030 < gain.high_s <= 2 * 0.030 + 0.01 * noisy.document.wall_s


def test_a_region_says_what_it_is_on_the_path(results: Results) -> None:
    view = region_view(results, "solve")
    assert [(part.name, round(part.seconds, 6)) for part in view.parts] == [("GPU work", 0.060)]
    assert [gain.factor for gain in view.gains] == [pytest.approx(1 / 0.9), 2.0, None]
    assert [gain.seconds for gain in view.gains] == pytest.approx([0.006, 0.030, 0.040], abs=PAUSES_S)
    assert [where.site for where in view.sites] == [1]
    assert view.bounds == RegionBounds(pytest.approx(0.040), 0.0, 0.0)


def test_the_first_screen_says_what_a_tenth_and_all_of_a_region_are_worth(view: PathView) -> None:
    """CPU work that is gone leaves its wait, but the time after the last call ends no wait."""
    saved = {row.name: (row.tenth_s, row.gone_s) for row in view.regions}
    assert saved["solve"] == (pytest.approx(0.006), pytest.approx(0.040, abs=PAUSES_S))
    assert saved["main"] == (pytest.approx(0.0027), pytest.approx(0.027, abs=PAUSES_S))


def test_a_region_that_was_not_replayed_has_no_saving(view: PathView) -> None:
    rows = [dataclasses.replace(row, tenth_s=None, gone_s=None) if row.name == "main" else row for row in view.regions]
    console = Console(width=80, file=StringIO(), record=True)
    console.print(render_path(dataclasses.replace(view, regions=rows), 80))
    main = next(line for line in console.export_text().splitlines() if " CPU main" in line)
    assert main.split()[4:6] == ["-", "-"]


def test_it_says_how_much_of_the_gpus_time_is_a_guess(results: Results) -> None:
    waiting = stored_waiting(results)
    length_s = waiting.length_s

    def told(most_s: float | None) -> list[str]:
        guessed = GuessedWork(count=79, least_s=0.0, likely_s=0.25 * length_s, most_s=most_s)
        changed = msgspec.structs.replace(waiting, guessed=guessed)
        document = msgspec.structs.replace(results.document, waiting=changed)
        notes = path_view(Results(results.folder, document)).notes
        return [note for note in notes if "how long 79 pieces of GPU work took" in note]

    assert not told(0.009 * length_s)
    assert " to " in told(0.5 * length_s)[0]
    assert "at least" in told(None)[0]


def test_threads_wait_for_the_slowest_of_their_team(tmp_path: Path) -> None:
    """Of two threads, one works 2 ms and the other 5 ms; sharing the slow one's evenly would save 1.5 ms."""
    once = [Call(Action.NONE, Kind.OTHER, own=MS)] * 2
    members = [
        Member(0, 0, once),
        Member(0, 0, [Call(Action.NONE, Kind.OTHER, own=2 * MS)], 0, 0),
        Member(0, 0, [Call(Action.NONE, Kind.OTHER, own=5 * MS)], 0, 0),
    ]
    timeline, work, _ = traced_together(members)
    start = np.array([0, 6, 1, 1]) * MS
    site = np.array([0, 0, 1, 2], np.int32)
    gap = np.array([5, 0, 0, 0]) * MS
    lines = (1, 2, 3)
    write_results(
        Findings(
            application="team",
            command=["./team"],
            wall_s=0.007,
            timeline=dataclasses.replace(timeline, start=start, site=site, gap=gap),
            sites=[SiteDescription(number, "cuCtxGetCurrent") for number in range(3)],
            stacks=[Stack(key=f"{line:032x}", frames=frames(("work", line), call="cuCtxGetCurrent")) for line in lines],
            modules=[Module(path="/bin/team", build_id="aa"), Module(path="/lib/libcuda.so", build_id="bb")],
            work=dataclasses.replace(work, measured=np.full(4, -1)),
        ),
        tmp_path,
    )
    results = open_results(tmp_path)
    view = path_view(results)
    assert [(row.place, row.threads_s) for row in view.threads_for] == [("als.cu:3", pytest.approx(0.003))]
    assert {row.name: row.count for row in view.patterns} == {"load imbalance": 1}
    slow = region_view(results, str(view.threads_for[0].number))
    assert (slow.bounds.faster_s, slow.bounds.even_s) == (pytest.approx(0.003), pytest.approx(0.0015))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("solve", "is no change: write REGION=2x"),
        ("solve=1x", "with a factor above 1"),
        ("solve=-2x", "is no change"),
        ("=2x", "is no change"),
        ("nothing=2x", "no region has the number or name 'nothing'"),
        ("99=2x", "no region has the number or name '99'"),
    ],
)
def test_a_change_that_cannot_be_is_refused(results: Results, change: str, why: str) -> None:
    with pytest.raises(FfmError, match=why):
        change_view(results, [change])


def test_a_region_is_changed_once(results: Results) -> None:
    with pytest.raises(FfmError, match="is changed twice"):
        change_view(results, ["solve=2x", "GPU=2x"])


def test_an_ambiguous_name_is_refused(results: Results) -> None:
    with pytest.raises(FfmError, match="part of several regions' names"):
        region_view(results, "als.cu")


def test_the_path_after_all_fixes_has_the_same_numbers(tmp_path: Path) -> None:
    """Without the unneeded wait, each 5 ms of the CPU run beside 6 ms of the GPU."""
    unneeded = Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION, gap=5 * MS, problem=Problem.UNNECESSARY_SYNCHRONIZATION)
    once = [Call(Action.ENQUEUE, Kind.LAUNCH, gpu=6 * MS), unneeded, Call(Action.WAIT_CONTEXT, Kind.SYNCHRONIZATION)]
    timeline, work, gpu = traced(once * TIMES)
    object.__setattr__(timeline, "site", np.tile(np.arange(3, dtype=np.int32), TIMES))
    object.__setattr__(work, "measured", np.where(gpu > 0, gpu, -1))
    stacks = [frames(("step", line), call=call) for line, call in ((1, "cudaLaunchKernel"), (2, "cudaS"), (3, "cudaT"))]
    described = [SiteDescription(number, "cuCtxSynchronize") for number in range(3)]
    found = Findings(
        application="als",
        command=["./als"],
        wall_s=0.110,
        timeline=timeline,
        sites=described,
        stacks=[Stack(key=f"{number:032x}", frames=stack) for number, stack in enumerate(stacks)],
        modules=[Module(path="/bin/als", build_id="aa"), Module(path="/lib/libcudart.so", build_id="bb")],
        work=work,
    )
    write_results(found, tmp_path)
    results = open_results(tmp_path)
    before, after = path_view(results), fixed_view(results)
    assert before.length_s == pytest.approx(0.110)
    assert after.length_s == pytest.approx(0.060, abs=PAUSES_S)
    assert after.saved_s == pytest.approx(0.050, abs=PAUSES_S)
    assert after.wall_s == pytest.approx(0.060, abs=PAUSES_S)
    pinned = Benefit(carry_s=0.02, bound_s=0.02, replay_s=0.04)
    less = Results(results.folder, msgspec.structs.replace(results.document, everything=pinned))
    assert fixed_view(less).saved_s == pytest.approx(0.040)
    numbers = {(row.kind, row.name, row.place): row.number for row in before.regions}
    assert [(row.kind, row.number) for row in after.regions] == [
        ("kernel", numbers["kernel", "cudaLaunchKernel", "als.cu:1"])
    ]


def test_a_run_without_problems_has_no_path_after_fixes(results: Results) -> None:
    with pytest.raises(FfmError, match="has no problem that could be fixed"):
        fixed_view(results)


def test_the_report_opens_with_the_path(results: Results) -> None:
    shares = overview(results.document).path
    assert [(share.name, round(share.percent, 6)) for share in shares if share.seconds] == [
        ("CPU", 30),
        ("kernels", 60),
        ("transfers", 10),
    ]
    assert in_one_line(shares) == "kernels 60.00 %, CPU 30.00 %, transfers 10.00 %"
