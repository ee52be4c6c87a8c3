"""How fast the model analyses, and in how much memory: events a second and bytes an event, by size.

    python benchmarks/model.py            # 10^5, 10^6 and 10^7 operations
    python benchmarks/model.py --largest 8

Each size runs in a process of its own, so that its peak memory is its own. The timeline imitates cumf_als: a loop of
synchronizing copies, frees and synchronizations with launches and allocations between, several threads, waits from a
heavy-tailed distribution, some iterations with fewer problems. Beside the compiled kernels stand a plain Python loop
(which must give the same answer) and NumPy without loops, for what can be said without a loop.
Prints a table and writes `benchmarks/results/model.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import description, watch_others
from numpy.typing import NDArray

from ffm.model.bound import bound_of_sequence, totals
from ffm.model.carry import carry, carry_by_group
from ffm.model.sequences import Membership, find_sequences
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.documents import Frame, Module, Stack
from ffm.results.timeline_file import load_results_timeline, save_timeline
from ffm.stages.findings import Findings, SiteDescription, analyse

RESULTS = Path(__file__).parent / "results" / "model.json"
SMALLEST = 5
"""The smallest size, as a power of ten."""
PLAIN_PYTHON_ROWS = 100_000
"""The plain Python loop is timed up to this size; beyond, its answer would take minutes."""
NUMPY_ROWS = 10_000_000
"""NumPy without loops is timed up to this size; beyond, its temporary columns would not fit."""
GOAL_EVENTS_A_SECOND = 10e6
GOAL_BYTES_AN_EVENT = 64
BODY = [Kind.TRANSFER, Kind.LAUNCH, Kind.FREE, Kind.ALLOCATION, Kind.LAUNCH, Kind.SYNCHRONIZATION, Kind.FREE] * 5
CALLS = {
    Kind.TRANSFER: "cudaMemcpy",
    Kind.LAUNCH: "cudaLaunchKernel",
    Kind.FREE: "cudaFree",
    Kind.ALLOCATION: "cudaMalloc",
    Kind.SYNCHRONIZATION: "cudaDeviceSynchronize",
}
SITES = 1000


def make_timeline(rows: int, threads: int = 8) -> Timeline:
    """Make up a timeline; the same for the same size. Filled in blocks, so that it takes little more than its size."""
    columns: dict[str, NDArray[Any]] = {
        "thread": np.empty(rows, np.int32),
        "start": np.empty(rows, np.int64),
        "duration": np.empty(rows, np.int64),
        "wait": np.empty(rows, np.int64),
        "gap": np.empty(rows, np.int64),
        "site": np.empty(rows, np.int32),
        "kind": np.empty(rows, np.uint8),
        "problem": np.empty(rows, np.uint8),
        "first_use": np.zeros(rows, np.int64),
        "occurrences": np.ones(rows, np.int64),
    }
    generator = np.random.default_rng(rows)
    clock = 0
    for begin in range(0, rows, 1_000_000):
        block = make_block(generator, np.arange(begin, min(begin + 1_000_000, rows)), -(-rows // threads))
        ends = clock + np.cumsum(block["duration"] + block["gap"])
        block["start"] = ends - block["duration"] - block["gap"]
        clock = int(ends[-1])
        for name, column in block.items():
            columns[name][begin : begin + len(column)] = column
    return Timeline(**columns)


def make_block(generator: np.random.Generator, row: NDArray[np.int64], a_thread: int) -> dict[str, NDArray[Any]]:
    """Make up some rows: the loop's body over and over, at other call stacks after every thousand iterations."""
    body = np.array(BODY, np.uint8)
    place = row % len(body)
    kind = body[place]
    waits = (kind != Kind.LAUNCH) & (kind != Kind.ALLOCATION)
    wait = np.where(waits, (generator.pareto(1.5, len(row)) * 20_000).astype(np.int64) + 1, 0)
    problem = np.where(waits & (place % 16 != 5), Problem.UNNECESSARY_SYNCHRONIZATION, 0).astype(np.uint8)
    problem[(kind == Kind.TRANSFER) & (generator.random(len(row)) < 0.9)] |= np.uint8(Problem.UNNECESSARY_TRANSFER)
    problem[waits & (generator.random(len(row)) < 0.001)] = Problem.NONE
    return {
        "thread": row // a_thread,
        "duration": wait + generator.integers(500, 20_000, len(row)),
        "wait": wait,
        "gap": generator.integers(100, 30_000, len(row)),
        "site": place + len(body) * (row // (len(body) * 1000) % (SITES // len(body))),
        "kind": kind,
        "problem": problem,
    }


def plain_python_carry(timeline: Timeline, selected: NDArray[np.bool_]) -> int:
    """Figure 5.1 with the carry as one reads it, for timelines without misplaced synchronizations: nanoseconds."""
    saved = carried = 0
    last_thread = None
    columns = (timeline.thread, timeline.kind, timeline.duration, timeline.wait, timeline.gap, timeline.problem)
    rows = zip(*(column.tolist() for column in columns), selected.tolist(), strict=True)

    def absorb(work: int) -> None:
        nonlocal saved, carried
        absorbed = min(work, carried)
        saved += absorbed
        carried -= absorbed

    for thread, kind, duration, wait, gap, problem, chosen in rows:
        if thread != last_thread:
            carried, last_thread = 0, thread
        removed = chosen and bool(problem & Problem.UNNECESSARY_SYNCHRONIZATION)
        call_goes = chosen and bool(problem & Problem.UNNECESSARY_TRANSFER or (removed and kind == Kind.FREE))
        if call_goes:
            saved += duration - wait
        elif kind != Kind.FREE:
            absorb(duration - wait)
        if removed:
            carried += wait
        elif wait or kind == Kind.SYNCHRONIZATION:
            carried = 0
        if not call_goes and kind == Kind.FREE:
            absorb(duration - wait)
        absorb(gap)
    return saved


def numpy_totals(timeline: Timeline, groups: int) -> NDArray[np.float64]:
    """`bound`'s totals by site without a loop: waits, calls and the time to the next traced operation."""
    traced = (timeline.wait > 0) | np.isin(timeline.kind, (Kind.SYNCHRONIZATION, Kind.TRANSFER))
    clock = np.cumsum(timeline.duration + timeline.gap)
    begin = clock - timeline.duration - timeline.gap
    last = np.append(timeline.thread[1:] != timeline.thread[:-1], True)
    stop = np.flatnonzero(last)
    thread_end = stop[np.searchsorted(stop, np.arange(len(timeline)))]
    candidates = np.flatnonzero(traced)
    after = np.searchsorted(candidates, np.arange(1, len(timeline) + 1))
    following = np.append(candidates, len(timeline))[after]
    until = np.where(following <= thread_end, begin[np.minimum(following, len(timeline) - 1)], clock[thread_end])
    ahead = until - begin - timeline.duration
    columns = (timeline.duration, timeline.wait, ahead)
    return np.stack([np.bincount(timeline.site, weights=column, minlength=groups) for column in columns]) / 1e9


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Run once, and return the time it took with its answer."""
    begin = time.perf_counter()
    answer = work()
    return time.perf_counter() - begin, answer


def peak_bytes(*, forget: bool = False) -> int:
    """The most memory that this process held at once, since the last call that forgot (Linux only)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:" if forget else "VmHWM:"):
            if forget:
                Path("/proc/self/clear_refs").write_text("5")
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status names no peak of memory")


def compile_kernels() -> float:
    """Compile, or load from the cache, and run each kernel once on a few rows; seconds."""

    def run() -> None:
        small = make_timeline(max(30_000, SITES))
        _, membership = analyse(findings(small))
        benefit_of_first_lines(small, membership)

    return seconds(run)[0]


def benefit_of_first_lines(timeline: Timeline, membership: Membership) -> tuple[float, float]:
    """Return the seconds that fixing the first ten lines of the first sequence saves: by `carry`, and by `bound`."""
    selected = membership.rows_of(0, 0, 9)
    operations = totals(timeline, selected.view(np.int8) - np.int8(1), np.zeros(1, np.int32), 1)
    return carry(timeline, selected), float(bound_of_sequence(operations)[0])


def passes(timeline: Timeline) -> dict[str, float]:
    """Seconds of each pass that the analysis consists of."""
    each = np.arange(SITES, dtype=np.int32)
    times = {}
    times["find sequences"], (_, membership) = seconds(lambda: find_sequences(timeline, SITES))
    sequence, sequences = membership.sequence_of_line(), len(membership.offsets) - 1
    times["totals of each sequence"], _ = seconds(lambda: totals(timeline, membership.line, sequence, sequences))
    times["carry of each sequence"], _ = seconds(lambda: carry_by_group(timeline, membership.line, sequence, sequences))
    times["totals of each site"], _ = seconds(lambda: totals(timeline, timeline.site, each, SITES))
    times["carry of each site"], _ = seconds(lambda: carry_by_group(timeline, timeline.site, each, SITES))
    return times


def findings(timeline: Timeline) -> Findings:
    """What stage 5 is given: a call stack for each site, some in instances of one template."""
    stacks = [
        Stack(
            key=str(site),
            frames=[
                Frame(module=0, offset=site, function=CALLS[BODY[site % len(BODY)]]),
                Frame(module=0, offset=site, function=f"void step<{site}>(int)", file="solve.cu", line=site + 1),
            ],
        )
        for site in range(SITES)
    ]
    sites = [SiteDescription(site, "") for site in range(SITES)]
    modules = [Module(path="solve", build_id="")]
    return Findings(
        "benchmark", [], float((timeline.duration + timeline.gap).sum()) / 1e9, timeline, sites, stacks, modules
    )


def measure(rows: int) -> dict[str, Any]:
    """Measure one size; to be run in a process of its own."""
    compile_s = compile_kernels()
    timeline = make_timeline(rows)
    held = sum(getattr(timeline, name).nbytes for name in Timeline.__dataclass_fields__)
    given = findings(timeline)
    before = peak_bytes(forget=True)
    total, (document, membership) = seconds(lambda: analyse(given))
    after = peak_bytes()
    part_s, part = seconds(lambda: benefit_of_first_lines(timeline, membership))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.arrow"
        save_s, _ = seconds(lambda: save_timeline(timeline, path, membership.line))
        file_bytes = path.stat().st_size
        load_s, _ = seconds(lambda: load_results_timeline(path))
    chosen = timeline.site % 2 == 0
    kernel_s, saved = seconds(lambda: carry(timeline, chosen))
    numpy_s = python_s = None
    agree = True
    if rows <= NUMPY_ROWS:
        numpy_s, by_numpy = seconds(lambda: numpy_totals(timeline, SITES))
        sums = totals(timeline, timeline.site, np.arange(SITES, dtype=np.int32), SITES)
        agree = np.allclose(by_numpy, np.stack([sums.total, sums.wait, sums.gap]))
    if rows <= PLAIN_PYTHON_ROWS:
        python_s, by_python = seconds(lambda: plain_python_carry(timeline, chosen))
        agree = agree and abs(by_python / 1e9 - saved) < 1e-6
    return {
        "rows": rows,
        "compile_or_load_s": compile_s,
        "passes_s": passes(timeline),
        "analysis_s": total,
        "events_a_second": rows / total,
        "timeline_bytes_an_event": held / rows,
        "analysis_peak_above_timeline_bytes_an_event": (after - before) / rows,
        "sequences": len(document.sequences),
        "subsequence_s": part_s,
        "subsequence_carry_bound_s": list(part),
        "one_group_carry_s": kernel_s,
        "one_group_carry_plain_python_s": python_s,
        "site_totals_numpy_s": numpy_s,
        "save_s": save_s,
        "load_s": load_s,
        "file_bytes_an_event": file_bytes / rows,
        "agrees_with_references": bool(agree),
    }


def optional(value: float | None) -> str:
    """Format seconds that were perhaps not measured."""
    return "-" if value is None else f"{value:.3f}"


def show(measurements: list[dict[str, Any]]) -> None:
    """Print the table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"Analysis, one core of {os.cpu_count()} ({platform.processor() or platform.machine()})")
    table.add_column("operations")
    for one in measurements:
        table.add_column(f"{one['rows']:,}", justify="right")

    def row(title: str, cell: Callable[[dict[str, Any]], str]) -> None:
        table.add_row(title, *(cell(one) for one in measurements))

    row("analysis, s", lambda one: f"{one['analysis_s']:.3f}")
    row(
        f"  million events/s (goal {GOAL_EVENTS_A_SECOND / 1e6:.0f})", lambda one: f"{one['events_a_second'] / 1e6:.1f}"
    )
    row(
        f"  bytes/event, timeline and all else (goal {GOAL_BYTES_AN_EVENT})",
        lambda one: f"{one['timeline_bytes_an_event'] + one['analysis_peak_above_timeline_bytes_an_event']:.1f}",
    )
    for name in measurements[0]["passes_s"]:
        row(f"  {name}, s", lambda one, name=name: f"{one['passes_s'][name]:.3f}")  # type: ignore[misc]
    row("a subsequence, both estimators, s", lambda one: f"{one['subsequence_s']:.3f}")
    row("carry of one group, s", lambda one: f"{one['one_group_carry_s']:.3f}")
    row("  the same in plain Python, s", lambda one: optional(one["one_group_carry_plain_python_s"]))
    row("site totals in NumPy, s", lambda one: optional(one["site_totals_numpy_s"]))
    row("save / load the file, s", lambda one: f"{one['save_s']:.2f} / {one['load_s']:.2f}")
    row("  bytes/event in the file", lambda one: f"{one['file_bytes_an_event']:.1f}")
    row("compile or load kernels, s", lambda one: f"{one['compile_or_load_s']:.2f}")
    row("agrees with the references", lambda one: "yes" if one["agrees_with_references"] else "NO")
    Console().print(table)


def main() -> int:
    """Measure every size, print and write the result; 1 if an answer differs from its reference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=7, metavar="N", help="largest size as a power of ten")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return 0
    del arguments.one
    if arguments.largest < SMALLEST:
        parser.error(f"--largest must be at least {SMALLEST}")
    compile_kernels()  # so that no measured process compiles
    measurements = []
    with watch_others() as others:
        for power in range(SMALLEST, arguments.largest + 1):
            child = subprocess.run(
                [sys.executable, __file__, "--one", str(10**power)], check=True, stdout=subprocess.PIPE, text=True
            )
            measurements.append(json.loads(child.stdout))
    show(measurements)
    print(others)
    RESULTS.parent.mkdir(exist_ok=True)
    results = {**description(arguments, others), "measurements": measurements}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {RESULTS.relative_to(Path.cwd()) if RESULTS.is_relative_to(Path.cwd()) else RESULTS}")
    return 0 if all(one["agrees_with_references"] for one in measurements) else 1


if __name__ == "__main__":
    sys.exit(main())
