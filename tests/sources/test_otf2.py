"""Archives of OTF2 that were published with CASITA, and CASITA's own figures of them (README of the references)."""

from __future__ import annotations

import itertools
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ffm.errors import DocumentError, FfmError
from ffm.model.estimators.faster import Faster
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.waiting.graph import Graph, build_graph
from ffm.model.waiting.meeting_blame import share_meetings
from ffm.model.waiting.meetings import Meetings, recorded_meetings
from ffm.model.waiting.path import Path as CriticalPath
from ffm.model.waiting.patterns import find_patterns
from ffm.results.documents.notes import UnpairedCalls
from ffm.results.stored import open_results
from ffm.sources import scorep
from ffm.sources.partners import PartnerFinder
from ffm.sources.profile import Profile
from ffm.sources.profiled import ProfiledRun, profiled_run
from ffm.sources.profiled_results import write_profile
from ffm.sources.scorep import read_archive, read_otf2
from tests.model.whole_path import find_path
from tests.sources.nsight_reports import TRACES

CASITA = TRACES.parent / "casita"
needs_archives = pytest.mark.skipif(not CASITA.is_dir(), reason="the archives published with CASITA are not here")
EMPTY = (np.zeros(0, np.int64),) * 5
MICROSECONDS = 1e-6
"""CASITA prints so many digits."""


@pytest.fixture(autouse=True)
def reader() -> None:
    pytest.importorskip("otf2", reason="the extra `otf2` is not installed")


def casita(name: str) -> dict[str, Any]:
    figures: dict[str, Any] = json.loads((CASITA / f"{name}.json").read_text())
    return figures


@cache
def profile_of(name: str) -> Profile:
    return read_otf2(CASITA / "traces" / name)


def graph_of(run: ProfiledRun) -> Graph:
    times = infer_gpu_times(run.timeline, run.work)
    return build_graph(run.timeline, run.work, times, times.likely)


@cache
def run_of(name: str) -> tuple[ProfiledRun, Meetings, CriticalPath]:
    profile = profile_of(name)
    run = profiled_run(profile, profile.calls.name.astype(np.int32))
    assert run.work.awaits is not None
    graph = graph_of(run)
    meetings = recorded_meetings(run.timeline, run.work.awaits, run.work.process_of_thread)
    return run, meetings, find_path(run.timeline, run.work, graph, meetings=meetings)


def waited(name: str) -> dict[str, tuple[float, int]]:
    """Return the seconds that calls waited for other threads, and how many did, by the calls' names."""
    profile = profile_of(name)
    assert profile.partners is not None
    found: dict[str, tuple[float, int]] = {}
    rows = np.flatnonzero(profile.partners.waited)
    for row in rows.tolist():
        call = profile.names[profile.calls.name[row]]
        seconds, count = found.get(call, (0.0, 0))
        found[call] = seconds + profile.partners.waited[row] / 1e9, count + 1
    return found


@needs_archives
@pytest.mark.parametrize(
    ("name", "pattern", "calls", "ties"),
    [
        ("4_mpi_ls_barr", "Late sender", ("MPI_Recv",), 0),
        ("4_mpi_ls_barr", "Wait in MPI collective", ("MPI_Init", "MPI_Barrier", "MPI_Finalize"), 0),
        ("10_scorep_mpi_tags", "Late sender", ("MPI_Recv",), 0),
        ("10_scorep_mpi_tags", "Wait in MPI collective", ("MPI_Init", "MPI_Finalize"), 0),
        ("2_cuda_simple", "Wait in MPI_Sendrecv", ("MPI_Sendrecv",), 0),
        ("2_cuda_simple", "Wait in MPI collective", ("MPI_Init", "MPI_Barrier", "MPI_Allreduce", "MPI_Finalize"), 0),
        ("2_cuda_simple", "Wait in OpenMP barrier", ("!$omp",), 0),
        ("2_jacobi_blame_cpu_050", "Wait in MPI_Sendrecv", ("MPI_Sendrecv",), 0),
        (
            "2_jacobi_blame_cpu_050",
            "Wait in MPI collective",
            ("MPI_Init", "MPI_Barrier", "MPI_Allreduce", "MPI_Fin"),
            0,
        ),
        ("2_jacobi_blame_cpu_050", "Wait in OpenMP barrier", ("!$omp",), 1),
    ],
)
def test_waiting_of_ranks_and_threads_is_casitas(name: str, pattern: str, calls: tuple[str, ...], ties: int) -> None:
    """CASITA counts everyone but the last; of two that come in the same nanosecond, neither waits."""
    expected = casita(name)["casita"]["waiting"]["patterns"][pattern]
    mine = [value for call, value in waited(name).items() if call.startswith(calls)]
    assert sum(seconds for seconds, _ in mine) == pytest.approx(expected["value"], abs=MICROSECONDS)
    assert sum(count for _, count in mine) == expected["occurrences"] - ties


@needs_archives
@pytest.mark.parametrize("name", ["4_mpi_ls_barr", "10_scorep_mpi_tags", "2_cuda_simple"])
def test_patterns_of_waiting_for_each_other_are_casitas(name: str) -> None:
    """CASITA counts a call that both sends and receives for itself, as `Wait in MPI_Sendrecv`."""
    expected = casita(name)["casita"]["waiting"]["patterns"]
    run, meetings, _ = run_of(name)
    found = find_patterns(run.timeline, run.work, graph_of(run), meetings)
    messages = expected.get("Late sender"), expected.get("Late receiver"), expected.get("Wait in MPI_Sendrecv")
    for theirs, ours in (
        (messages, (found.late_sender, found.late_receiver)),
        ((expected.get("Wait in MPI collective"),), (found.collective,)),
        ((expected.get("Wait in OpenMP barrier"),), (found.barrier,)),
    ):
        seconds, count = (sum(one[key] for one in theirs if one) for key in ("value", "occurrences"))
        assert sum(one.lasting for one in ours) / 1e9 == pytest.approx(seconds, abs=MICROSECONDS)
        assert sum(one.count for one in ours) == count
    assert not found.imbalance.count


@needs_archives
@pytest.mark.parametrize("name", ["1_ocl_deps", "1_sptc", "2_cuda_simple", "2_jacobi_blame_cpu_050"])
def test_what_gpus_did_is_casitas(name: str) -> None:
    """Kernels and transfers, by a second program that CASITA's figures were checked with."""
    expected = casita(name)["independent"]["patterns"]["offload_total"]
    profile = profile_of(name)
    lasting = profile.work.end - profile.work.start
    kernel = profile.work.name >= 0
    assert (int(kernel.sum()), int((~kernel).sum())) == (expected["kernels"], expected["transfers"])
    assert lasting[kernel].sum() / 1e9 == pytest.approx(expected["kernel_sum_s"], abs=MICROSECONDS)
    assert lasting[~kernel].sum() / 1e9 == pytest.approx(expected["transfer_sum_s"], abs=MICROSECONDS)
    assert not len(profile.unlaunched)


@needs_archives
@pytest.mark.parametrize("name", ["4_mpi_ls_barr", "10_scorep_mpi_tags"])
def test_the_ranks_that_wait_least_and_most_are_casitas(name: str) -> None:
    run, meetings, _ = run_of(name)
    expected = casita(name)["casita"]["waiting_time_rank_minmax_s"]
    rank = run.work.process_of_thread[meetings.thread]
    seconds = np.bincount(rank, weights=meetings.waited) / 1e9
    assert [int(seconds.argmin()), int(seconds.argmax())] == [expected["min"][0], expected["max"][0]]
    assert [seconds.min(), seconds.max()] == pytest.approx([expected["min"][1], expected["max"][1]], abs=MICROSECONDS)


@needs_archives
@pytest.mark.parametrize("name", ["4_mpi_ls_barr", "10_scorep_mpi_tags"])
def test_all_waiting_is_blamed(name: str) -> None:
    """CASITA loses the blame that falls before a rank's first event: waiting for the last one to call `MPI_Init`."""
    run, meetings, _ = run_of(name)
    assert meetings.waited.sum() / 1e9 == pytest.approx(
        casita(name)["casita"]["total_waiting_time_host_s"], abs=MICROSECONDS
    )
    shared = share_meetings(run.timeline, run.work, graph_of(run), meetings)
    assert shared.blame.sum() + shared.on_meeting.sum() == pytest.approx(meetings.waited.sum())


def on_path(name: str, folder: Path) -> dict[str, float]:
    """Return the seconds on the path of each region, without the regions within it."""
    profile, (run, _, path) = profile_of(name), run_of(name)
    archive = read_archive(CASITA / "traces" / name / "traces.otf2", folder / "columns.npz")
    begin = int(profile.calls.start.min())
    location = dict(zip(run.timeline.thread.tolist(), profile.calls.thread.tolist(), strict=True))
    rows = np.column_stack([archive.tables["interval"][one] for one in ("location", "start", "end", "region")])
    found: dict[str, float] = {}
    for lane, since, until in zip(path.lane.tolist(), path.begin + begin, path.end + begin, strict=True):
        mine = rows[(rows[:, 0] == location[lane]) & (rows[:, 1] < until) & (rows[:, 2] > since)]
        cuts = np.unique(np.clip(np.append(mine[:, 1:3], (since, until)), since, until))
        for left, right in itertools.pairwise(cuts):
            around = mine[(mine[:, 1] <= left) & (mine[:, 2] >= right)]
            region = archive.names.regions[around[-1, 3]].name if len(around) else ""
            found[region] = found.get(region, 0.0) + (right - left) / 1e9
    return found


@needs_archives
@pytest.mark.parametrize(
    ("name", "region", "mangled"),
    [
        ("4_mpi_ls_barr", "foo", "foo"),
        ("4_mpi_ls_barr", "late_sender", "late_sender"),
        ("4_mpi_ls_barr", "MPI_Init", "MPI_Init"),
        ("10_scorep_mpi_tags", "sleep(double)", "_Z5sleepd"),
        ("10_scorep_mpi_tags", "latesender(int, int)", "_Z10latesenderii"),
    ],
)
def test_the_path_through_ranks_is_casitas(tmp_path: Path, name: str, region: str, mangled: str) -> None:
    expected = {row["region"]: row["time_on_cp_s"] for row in casita(name)["casita"]["critical_path"]["top20"]}
    assert on_path(name, tmp_path)[region] == pytest.approx(expected[mangled], abs=MICROSECONDS)


@needs_archives
@pytest.mark.parametrize("name", ["4_mpi_ls_barr", "2_cuda_simple"])
def test_work_of_the_cpu_saves_no_more_than_it_takes_on_the_path(tmp_path: Path, name: str) -> None:
    """What others do meanwhile stays."""
    waiting = write_profile(profile_of(name), "otf2", tmp_path / "results").waiting
    assert waiting is not None
    tried = [region for region in waiting.regions if region.kind == "CPU" and region.gone_s is not None]
    assert tried
    for region in tried:
        assert region.gone_s is not None
        assert region.gone_s <= region.path_s + 1e-9
        assert region.tenth_s is not None
        assert region.tenth_s <= region.path_s / 10 + 1e-9


@needs_archives
def test_ranks_wait_less_for_work_that_is_faster(tmp_path: Path) -> None:
    """Rank 0 works 19.946 s in `main`, for which the others wait; so do they, for 1 to 3 s. Without all of that, the
    messages go from rank to rank at once, and what remains is the 0.140 s until all have left `MPI_Init`, the 0.977 and
    1.051 s of two ranks in another function, and the calls. Equation 5.3 looks at one wait at a time, and says 15.755.
    """
    waiting = write_profile(profile_of("4_mpi_ls_barr"), "otf2", tmp_path / "results").waiting
    assert waiting is not None
    main = waiting.regions[0]
    assert (main.kind, main.name) == ("CPU", "main")
    assert main.gone_s == pytest.approx(20.085412 - 2.168982, abs=1e-6)
    assert main.tenth_s == pytest.approx(main.path_s / 10, abs=1e-9)
    assert main.faster_bound_s == pytest.approx(15.755, abs=1e-3)
    before = waiting.regions[1]
    assert (before.kind, before.name) == ("CPU", "before the first call")
    assert before.gone_s == pytest.approx(before.path_s)  # all wait in `MPI_Init` for the last rank to call it


@needs_archives
@pytest.mark.parametrize("name", ["4_mpi_ls_barr", "10_scorep_mpi_tags", "2_cuda_simple", "1_sptc", "1_ocl_deps"])
def test_a_replay_without_changes_is_the_run(name: str) -> None:
    """To the nanosecond, though who waits for whom is found anew."""
    run, _, _ = run_of(name)
    replay = Replay(run.timeline, run.work, infer_gpu_times(run.timeline, run.work))
    fixed = replay.fixed()
    assert (fixed.timeline.start == run.timeline.start).all()
    assert (fixed.timeline.wait == run.timeline.wait).all()


@needs_archives
@pytest.mark.parametrize("name", ["4_mpi_ls_barr", "10_scorep_mpi_tags", "1_ocl_deps", "1_sptc", "2_cuda_simple"])
def test_stored_runs_are_replayed(tmp_path: Path, name: str) -> None:
    """What cannot be faster saves nothing, as read from the results' files; encounters are numbered from 0."""
    write_profile(profile_of(name), "otf2", tmp_path / "results")
    results = open_results(tmp_path / "results")
    assert results.work is not None and results.work.encounters is not None
    number = results.work.encounters.number
    assert (np.unique(number) == np.arange(number.max(initial=-1) + 1)).all()
    replayed = results.estimates.changed(Faster.nothing(len(results.timeline)))
    assert replayed is not None and replayed.likely_s == 0


@needs_archives
@pytest.mark.parametrize("name", ["4_mpi_ls_barr", "10_scorep_mpi_tags", "1_ocl_deps", "1_sptc", "2_cuda_simple"])
def test_the_path_covers_each_nanosecond_once(name: str) -> None:
    run, _, path = run_of(name)
    assert (path.begin[1:] == path.end[:-1]).all()
    end = (run.timeline.start + run.timeline.duration + run.timeline.gap).max()
    assert path.length == end - run.timeline.start.min()


@needs_archives
def test_lost_records_are_counted() -> None:
    """CASITA's data quality: of each rank 20 kernels and 38 copies."""
    assert UnpairedCalls(calls=116) in profile_of("2_jacobi_blame_cpu_050").notes


@needs_archives
def test_a_damaged_archive_is_refused_in_one_sentence(tmp_path: Path) -> None:
    def copy(name: str) -> Path:
        shutil.copytree(CASITA / "traces" / "4_mpi_ls_barr", tmp_path / name, copy_function=shutil.copyfile)
        for folder in (tmp_path / name, tmp_path / name / "traces"):
            folder.chmod(0o755)
        return tmp_path / name

    for name, file, content in (
        ("cut-events", "traces/1.evt", lambda whole: whole[: len(whole) // 2]),
        ("no-events", "traces/1.evt", lambda whole: b""),
        ("cut-definitions", "traces.def", lambda whole: whole[: len(whole) // 2]),
        ("another-kind", "traces.otf2", lambda whole: b"GIF89a"),
    ):
        folder = copy(name)
        path = folder / file
        path.write_bytes(content(path.read_bytes()))
        with pytest.raises(DocumentError, match="cannot be read") as refused:
            read_otf2(folder)
        assert "\n" not in str(refused.value)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DocumentError, match=r"contains 0 files named"):
        read_otf2(tmp_path / "empty")
    with pytest.raises(DocumentError, match="is missing"):
        read_otf2(tmp_path / "nowhere")


def test_without_the_library_the_answer_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "traces.otf2").write_bytes(b"")
    monkeypatch.setattr(scorep.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(FfmError, match=r"pip install 'ffm\[otf2\]'"):
        read_otf2(tmp_path)


def locked_archive(folder: Path) -> Path:
    """Write an archive in which threads wait for a critical section, a mutex and a condition; nanoseconds."""
    import otf2
    from otf2.enums import Paradigm, RegionRole

    with otf2.writer.open(str(folder), timer_resolution=10**9) as trace:
        definitions = trace.definitions
        group = definitions.location_group("process", system_tree_parent=definitions.system_tree_node("node"))

        def region(name: str, paradigm: Any, role: Any = RegionRole.FUNCTION) -> Any:
            return definitions.region(name, source_file="a.c", begin_line_number=7, paradigm=paradigm, region_role=role)

        main = region("main", Paradigm.COMPILER)
        critical = region("!$omp critical @a.c:7", Paradigm.OPENMP, RegionRole.CRITICAL)
        lock, unlock, condition = (
            region(f"pthread_{name}", Paradigm.PTHREAD) for name in ("mutex_lock", "mutex_unlock", "cond_wait")
        )
        one, other = (trace.event_writer(f"thread {number}", group=group) for number in range(2))

        def held(thread: Any, begin: int, acquired: int, released: int, order: int) -> None:
            thread.enter(begin, critical)
            thread.thread_acquire_lock(acquired, Paradigm.OPENMP, 1, order)
            thread.thread_release_lock(released, Paradigm.OPENMP, 1, order)
            thread.leave(released + 1, critical)

        one.enter(0, main)
        other.enter(0, main)
        held(one, 10, 10, 50, 1)
        held(other, 20, 52, 60, 2)
        held(one, 70, 71, 80, 3)
        other.enter(100, lock)
        other.thread_acquire_lock(101, Paradigm.PTHREAD, 2, 1)
        other.leave(102, lock)
        other.enter(110, condition)
        other.thread_release_lock(111, Paradigm.PTHREAD, 2, 1)
        one.enter(120, lock)
        one.thread_acquire_lock(121, Paradigm.PTHREAD, 2, 2)
        one.leave(122, lock)
        one.enter(130, unlock)
        one.thread_release_lock(131, Paradigm.PTHREAD, 2, 2)
        one.leave(132, unlock)
        other.thread_acquire_lock(135, Paradigm.PTHREAD, 2, 3)
        other.leave(136, condition)
        one.leave(200, main)
        other.leave(200, main)
    return folder


def test_threads_wait_for_locks_that_others_hold(tmp_path: Path) -> None:
    """From the request to the release by the other thread; what acquiring takes then is overhead. A condition is no
    lock: nothing shows for what it was waited.
    """
    profile = read_otf2(locked_archive(tmp_path / "archive"))
    assert profile.partners is not None
    calls, waited = profile.calls, profile.partners.waited
    assert [(int(calls.start[row]), int(calls.end[row]), int(waited[row])) for row in np.flatnonzero(waited)] == [
        (20, 52, 30)
    ]
    waiting = write_profile(profile, "otf2", tmp_path / "results").waiting
    assert waiting is not None
    assert (waiting.locks.count, waiting.locks.seconds) == (1, 30e-9)
    assert (waiting.barrier.count, waiting.collective.count) == (0, 0)
    blamed = {(region.kind, region.name): region.threads_s for region in waiting.regions if region.threads_s > 0}
    assert blamed == {("CPU", "!$omp critical @a.c:7"): 30e-9}


@needs_archives
def test_threads_of_a_published_archive_waited_for_a_critical_section() -> None:
    """CASITA does not count these waits. Of 40 times, 2_cuda_simple's threads came 4 times to the section too early."""
    seconds, count = waited("2_cuda_simple")["acquire lock"]
    assert (count, seconds) == (4, pytest.approx(33.375e-6))


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 50), st.integers(0, 20), st.booleans()),
        max_size=20,
    )
)
def test_damaged_records_of_locks_make_no_wait_longer_than_its_call(
    rows: list[tuple[int, int, int, int, bool]],
) -> None:
    """Orders may occur twice or be missing, and releases may come before what they release."""
    lock, order, start, lasting, releases = (np.array(column) for column in zip(*rows, strict=True)) if rows else EMPTY
    finder = PartnerFinder(start, start + lasting)
    calls = np.arange(len(rows))
    key = np.column_stack((np.zeros(len(rows), np.int64), lock, order))
    finder.locks(key, calls, releases.astype(bool))
    found = finder.found()
    assert ((found.waited >= 0) & (found.waited <= lasting)).all()
    assert (found.awaits < len(rows)).all()
    assert (found.awaits[found.waited > 0] >= 0).all()
