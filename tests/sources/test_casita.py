"""Every figure that CASITA prints of its public traces, beside ffm's: the same, or in the table of `docs/casita.md`.

Not compared are sums over CASITA's path, which has holes and covers some time twice.
"""

from __future__ import annotations

import itertools
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ffm.model.waiting.blame import find_blame
from ffm.model.waiting.path import Part
from ffm.model.waiting.path import Path as CriticalPath
from ffm.model.waiting.patterns import find_patterns
from ffm.sources.scorep import Archive, read_archive
from tests.model.whole_path import find_path
from tests.sources.test_otf2 import CASITA, casita, graph_of, needs_archives, profile_of, run_of, waited

PAGE = Path(__file__).parents[2] / "docs" / "casita.md"
EXACT = 1.01e-6
"""CASITA prints microseconds; both figures were rounded."""
NEARLY = 2e-4
"""For the trace of which a part is unexplained."""
TRACES = {
    "4_mpi_ls_barr": EXACT,
    "10_scorep_mpi_tags": EXACT,
    "1_ocl_deps": EXACT,
    "1_sptc": NEARLY,
    "2_cuda_simple": EXACT,
}
WAITING_CALLS = {
    "Late sender": ("MPI_Recv",),
    "Wait in MPI collective": ("MPI_Init", "MPI_Barrier", "MPI_Allreduce", "MPI_Finalize"),
    "Wait in MPI_Sendrecv": ("MPI_Sendrecv",),
    "Wait in OpenMP barrier": ("!$omp",),
}
NAMES = {
    "_Z5sleepd": "sleep(double)",
    "_Z10latesenderii": "latesender(int, int)",
    "_ZN3MPI9IntracommC2EP19ompi_communicator_t": "MPI::Intracomm::Intracomm(ompi_communicator_t*)",
    "_ZN3MPI14Is_initializedEv": "MPI::Is_initialized()",
    "_Z41__static_initialization_and_destruction_0ii": "__static_initialization_and_destruction_0(int, int)",
    "_Z11copy_kernelPfPKfii": "copy_kernel(float*, float const*, int, int)",
    "_Z41__device_stub__Z13jacobi_kernelPKfPfiiS1_PKfPfiiS1_": "__device_stub__Z13jacobi_kernelPKfPfiiS1_("
    "float const*, float*, int, int, float*)",
    "_ZN77_GLOBAL__N__53_tmpxft_00001290_00000000_6_jacobi_cuda_kernel_cpp1_ii_3ff1eeb910cudaLaunchIcEE9cudaErrorPT_": (
        "cudaError (anonymous namespace)::cudaLaunch<char>(char*)"
    ),
}
"""Names as ffm shows them."""

Figures = dict[str, float]


@cache
def archive_of(name: str) -> Archive:
    pytest.importorskip("otf2", reason="the extra `otf2` is not installed")
    with tempfile.TemporaryDirectory() as folder:
        return read_archive(CASITA / "traces" / name / "traces.otf2", Path(folder) / "columns.npz")


class Calls:
    """The regions of the archive's threads, as they nest."""

    def __init__(self, name: str) -> None:
        archive, profile, (run, _, _) = archive_of(name), profile_of(name), run_of(name)
        interval = archive.tables["interval"]
        self._origin = int(profile.calls.start.min())
        self._location = dict(zip(run.timeline.thread.tolist(), profile.calls.thread.tolist(), strict=True))
        rows = np.column_stack([interval[column] for column in ("location", "start", "end", "region")])
        self._of = {number: rows[rows[:, 0] == number] for number in np.unique(rows[:, 0]).tolist()}
        self._names = [region.name for region in archive.names.regions]

    def shares(
        self, lane: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64], weight: NDArray[np.float64]
    ) -> Figures:
        """Share weights among the innermost regions of stretches of threads, by time."""
        found: Figures = {}
        for thread, since, until, whole in zip(
            lane.tolist(), (begin + self._origin).tolist(), (end + self._origin).tolist(), weight.tolist(), strict=True
        ):
            mine = self._of[self._location[thread]]
            mine = mine[(mine[:, 1] < until) & (mine[:, 2] > since)]
            cuts = np.unique(np.clip(np.append(mine[:, 1:3], (since, until)), since, until)).tolist()
            for left, right in itertools.pairwise(cuts):
                around = mine[(mine[:, 1] <= left) & (mine[:, 2] >= right)]
                region = self._names[around[-1, 3]] if len(around) else ""
                found[region] = found.get(region, 0.0) + whole * (right - left) / (until - since) / 1e9
        return found

    def exclusive(self) -> tuple[Figures, Figures]:
        """Return how often each region was entered, and how long it took without those inside it."""
        counts, seconds = dict[str, float](), dict[str, float]()
        for rows in self._of.values():
            open_rows: list[NDArray[np.int64]] = []
            for row in rows:
                name, lasting = self._names[row[3]], int(row[2] - row[1]) / 1e9
                counts[name] = counts.get(name, 0) + 1
                seconds[name] = seconds.get(name, 0.0) + lasting
                while open_rows and open_rows[-1][2] <= row[1]:
                    open_rows.pop()
                if open_rows and row[2] <= open_rows[-1][2]:
                    outer = self._names[open_rows[-1][3]]
                    seconds[outer] -= lasting
                open_rows.append(row)
        return counts, seconds


def on_path(name: str, calls: Calls) -> Figures:
    """Return the seconds on the path by region; GPU work by its kernel."""
    profile, (run, meetings, _) = profile_of(name), run_of(name)
    path: CriticalPath = find_path(run.timeline, run.work, graph_of(run), meetings=meetings)
    gpu = path.part == Part.GPU
    host = ~gpu & (path.end > path.begin)
    lasting = (path.end - path.begin).astype(np.float64)
    found = calls.shares(path.lane[host], path.begin[host], path.end[host], lasting[host])
    names = zip(profile.work.call.tolist(), profile.work.name.tolist(), strict=True)
    kernel = {call: f"kernel {profile.names[one]}" for call, one in names if one >= 0}
    for row, nanoseconds in zip(path.row[gpu].tolist(), lasting[gpu].tolist(), strict=True):
        work = kernel.get(row, "copies")
        found[work] = found.get(work, 0.0) + nanoseconds / 1e9
    return found


@cache
def ours(name: str) -> Figures:
    """Return ffm's figures, under the names that `theirs` gives to CASITA's."""
    calls = Calls(name)
    run, meetings, path = run_of(name)
    graph = graph_of(run)
    patterns = find_patterns(run.timeline, run.work, graph, meetings)
    blame = find_blame(run.timeline, run.work, graph, meetings)
    found: Figures = {"the run's length": path.length / 1e9}
    waits = waited(name)
    for pattern, names in WAITING_CALLS.items():
        mine = [value for call, value in waits.items() if call.startswith(names)]
        found[pattern] = sum(seconds for seconds, _ in mine)
        found[f"{pattern}, occurrences"] = sum(count for _, count in mine)
    found["Early blocking wait"] = patterns.early.lasting / 1e9
    found["Early blocking wait, occurrences"] = patterns.early.count
    found["... on compute kernels"] = patterns.early_on_kernels / 1e9
    found["Kernel startup delay, total"] = patterns.launch_delay.lasting / 1e9
    found["-Consecutive communication"] = patterns.consecutive.lasting / 1e9
    found["-Consecutive communication, occurrences"] = patterns.consecutive.count
    idle, compute_idle = (sum(getattr(use, one) for use in patterns.gpu) / 1e9 for one in ("idle", "compute_idle"))
    found["Idle device"], found["Compute idle device"] = idle, compute_idle
    found["-Exclusive communication"] = compute_idle - idle
    found["-Copy-compute overlap"] = sum(use.copy_overlap for use in patterns.gpu) / 1e9
    found["Total communication time"] = found["-Exclusive communication"] + found["-Copy-compute overlap"]
    counts, seconds = calls.exclusive()
    shared = blame.threads
    blamed = calls.shares(shared.pieces.lane, shared.pieces.begin, shared.pieces.end, shared.blame)
    for kind, figures in (
        ("calls of", counts),
        ("time of", seconds),
        ("path", on_path(name, calls)),
        ("blame", blamed),
    ):
        found |= {f"{kind} {region}": value for region, value in figures.items()}
    profile = profile_of(name)
    for one, lasting in zip(profile.work.name, profile.work.end - profile.work.start, strict=True):
        if one >= 0:
            kernel = f"kernel {profile.names[one]}"
            found[f"calls of {kernel}"] = found.get(f"calls of {kernel}", 0) + 1
            found[f"time of {kernel}"] = found.get(f"time of {kernel}", 0.0) + lasting / 1e9
    found |= {f"waiting in {call}": value for call, (value, _) in waits.items()}
    return found


def theirs(name: str) -> Figures:
    """Return CASITA's figures."""
    figures = casita(name)["casita"]
    found: Figures = {"the run's length": figures["total_program_runtime_s"]}
    for pattern, row in figures["waiting"]["patterns"].items():
        if pattern.startswith(("MPI wait patterns", "No overlap", "-Blocking communication")):
            continue  # sums, zeros, and calls' times that follow below
        startup = pattern == "Kernel startup delay"
        found[f"{pattern}, total" if startup else pattern] = row["total_delay_s"] if startup else row["value"]
        if f"{pattern}, occurrences" in ours(name):
            found[f"{pattern}, occurrences"] = row["occurrences"]
    for row in figures["critical_path"]["top20"]:
        region = NAMES.get(row["region"], row["region"])
        if f"calls of kernel {region}" in ours(name):
            region = f"kernel {region}"
        found[f"path {region}"] = row["time_on_cp_s"]
        found[f"calls of {region}"], found[f"time of {region}"] = row["calls"], row["time_s"]
    for row in figures["waiting"]["per_region_from_output_trace"]:
        if row["region"].startswith("MPI"):
            found[f"waiting in {row['region']}"] = row["waiting_s"]
    reasons = ("MPI", "OpenMP")
    for row in figures["blame"]["rating_order_top20"]:
        shares = row["blame_by_reason_percent"] or {}
        part = sum(percent for reason, percent in shares.items() if reason.startswith(reasons)) / 100
        if row["blame_s"] * part > 0:
            found[f"blame {NAMES.get(row['region'], row['region'])}"] = row["blame_s"] * part
    return found


def rows_of_page(columns: int) -> list[list[str]]:
    """Return the rows of the table of the documentation that has so many columns and begins with a trace."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in rows if len(row) == columns and row[0] in TRACES]


@needs_archives
@pytest.mark.parametrize("name", TRACES)
def test_each_figure_is_casitas_or_is_said_to_differ(name: str) -> None:
    listed = {row[1]: (row[2], row[3]) for row in rows_of_page(5) if row[0] == name}
    differing = {}
    for figure, value in theirs(name).items():
        mine = ours(name).get(figure, 0.0)
        if abs(mine - value) > TRACES[name]:
            differing[figure] = (f"{value:.6f}", f"{mine:.6f}")
    assert differing == listed
    [(_, _, compared, same)] = [row for row in rows_of_page(4) if row[0] == name]
    assert (int(compared), int(same)) == (len(theirs(name)), len(theirs(name)) - len(differing))
