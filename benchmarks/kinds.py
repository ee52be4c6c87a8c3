"""What each stage adds to each kind of driver call: uploads, downloads, launches, waits, allocations and more.

    python benchmarks/kinds.py
    python benchmarks/kinds.py --rounds 5 --stages tracing

`programs/kinds.c` makes every kind of call in turn from a depth of 16 frames, with 10,000 blocks of the heap and one of
64 GiB allocated, on a virtual GPU whose own calls take as little time as they can. It runs bare and under each stage,
all in each round. What a call takes in a round is the processor time that the calling thread spends on it, in the turn
that took least: so waiting does not count, and other programs count little. What a stage adds is the median over all
rounds of what it takes more than the bare program, with the order statistics that enclose that median with 95 %
confidence from six rounds on: how much the virtual GPU's threads and the state of the caches vary is part of it. Four
kinds are no driver calls: allocations of the heap, a system call and a clock, which stages watch too. A kind whose name
holds two calls costs as much as both.

Prints a table; writes `benchmarks/results/kinds.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from accuracy import interval_of_median
from common.building import build
from common.machine import description, watch_others
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ffm.results.folder.paths import ResultsFolder
from ffm.stages.baseline import run_baseline
from ffm.stages.measure import Request
from ffm.stages.memory import run_memory
from ffm.stages.sync_use import run_sync_use
from ffm.stages.tracing import run_tracing

RESULTS = Path(__file__).parent / "results" / "kinds.json"
BLOCKS = 10_000
TURNS = 5
GOAL_NS = 400
"""docs/architecture.md#goals: one traced call, in stage 2."""
STAGES: dict[str, Callable[[Request], object]] = {
    "baseline": run_baseline,
    "tracing": run_tracing,
    "memory": run_memory,
    "sync_use": run_sync_use,
}
NOT_CALLS = ("malloc_free", "malloc_free_large", "system_write", "clock_read")
"""Kinds in `programs/kinds.c` that do not call the driver."""

# The virtual GPU's own calls would otherwise take microseconds, and hide what is measured.
INSTANT = """kernel.default = 0
copy.latency = 0
start.latency = 0
start.gap = 0
wait.latency = 0
call.launch = 0
call.copy = 0
call.set = 0
call.synchronize = 0
call.event = 0
call.read_back = 0
call.allocate = 0
call.free = 0
call.allocate_host = 0
call.free_host = 0
call.register_host = 0
call.allocate_pool = 0
call.free_pool = 0
"""

Times = dict[str, dict[str, list[float]]]
"""By way and kind: the least nanoseconds of the processor for one execution, in each round."""


def calls_in(kind: str) -> int:
    """Return how many driver calls one execution of a kind makes; 1 for a kind that makes none.

    >>> calls_in("alloc_free_async"), calls_in("event_create_destroy"), calls_in("launch"), calls_in("malloc_free")
    (2, 2, 1, 1)
    """
    pairs = ("alloc_free", "event_create_destroy", "stream_create_destroy", "launch_and_wait")
    return 2 if kind.startswith(pairs) else 1


def measure(stages: list[str], rounds: int, calls: int) -> Times:
    """Run the program bare and under each stage, in each round."""
    times: Times = {}
    with tempfile.TemporaryDirectory(prefix="ffm-kinds-") as place, Progress(console=Console(stderr=True)) as progress:
        folder = Path(place)
        program = build("kinds", folder)
        program.with_suffix(".vgpu").write_text(INSTANT)
        output = folder / "times"
        command = [str(program), str(output), str(calls), str(TURNS), str(BLOCKS)]
        ways = {"bare": run_bare, **{stage: STAGES[stage] for stage in STAGES if stage in stages}}
        steps = progress.add_task("running", total=rounds * len(ways))
        results = ResultsFolder(folder / "results")
        for earlier in list(STAGES)[: max(list(STAGES).index(stage) for stage in stages)]:
            STAGES[earlier](Request(command, results, timeout_s=None))
        for number in range(1, rounds + 1):
            for way, run in ways.items():
                progress.update(steps, description=f"round {number} of {rounds}: {way}")
                output.unlink(missing_ok=True)
                run(Request(command, results, timeout_s=None))
                for kind, told in (line.split() for line in output.read_text().splitlines()):
                    times.setdefault(way, {}).setdefault(kind, []).append(float(told))
                progress.advance(steps)
    return times


def run_bare(request: Request) -> None:
    """Run the program without ffm."""
    subprocess.run(request.command, check=True)


@dataclass(frozen=True, slots=True)
class Added:
    """What a stage adds to one call of a kind, in nanoseconds: the median over the rounds, and its interval."""

    ns: float
    low_ns: float
    high_ns: float

    @property
    def verdict(self) -> str:
        """Whether that meets the goal.

        >>> [Added(350, low, high).verdict for low, high in ((300, 390), (300, 450), (410, 450))]
        ['met', 'not known', 'above']
        """
        if self.low_ns > GOAL_NS:
            return "above"
        return "met" if self.high_ns <= GOAL_NS else "not known"


def added(times: Times, way: str, kind: str) -> Added:
    """Compare a stage with the bare program of the same round.

    >>> added({"bare": {"alloc_free": [100, 100, 102]}, "tracing": {"alloc_free": [700, 900, 802]}}, "tracing",
    ...       "alloc_free")
    Added(ns=350.0, low_ns=300.0, high_ns=400.0)
    """
    rounds = zip(times[way][kind], times["bare"][kind], strict=True)
    each = [(traced - bare) / calls_in(kind) for traced, bare in rounds]
    low, high = interval_of_median(each)
    return Added(median(each), low, high)


def show(times: Times) -> None:
    """Print a row for each kind."""
    stages = [way for way in times if way != "bare"]
    table = Table(
        title="Added to a call, ns of the processor: median (interval); the goal is of stage 2", title_justify="left"
    )
    table.add_column("kind", no_wrap=True)
    for heading in ("bare", *stages, *(["goal"] if "tracing" in stages else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    for kind, bare in times["bare"].items():
        costs = {stage: added(times, stage, kind) for stage in stages}
        cells = [f"{cost.ns:,.0f} ({cost.low_ns:,.0f} to {cost.high_ns:,.0f})" for cost in costs.values()]
        if "tracing" in costs:
            cells.append("" if kind in NOT_CALLS else costs["tracing"].verdict)
        table.add_row(kind, f"{median(bare) / calls_in(kind):,.0f}", *cells)
    Console().print(table)


def with_verdict(times: Times, verdict: str) -> list[str]:
    """Return the kinds of driver calls that have this verdict in stage 2."""
    return [
        kind for kind in times["bare"] if kind not in NOT_CALLS and added(times, "tracing", kind).verdict == verdict
    ]


def told_of_goal(times: Times) -> str:
    """Return what to print about the kinds that miss the goal in stage 2, or may miss it."""
    missed, unknown = (", ".join(with_verdict(times, verdict)) or "none" for verdict in ("above", "not known"))
    return f"kinds above the goal of {GOAL_NS} ns in stage 2: {missed}; not known: {unknown}"


def rows_of(times: Times) -> list[dict[str, Any]]:
    """Return the results for each kind, as they are written: the median nanoseconds, and what each stage adds."""
    return [
        {
            "kind": kind,
            "calls": calls_in(kind),
            **{way: median(times[way][kind]) for way in times},
            "added": {
                way: {"ns": cost.ns, "interval_ns": [cost.low_ns, cost.high_ns]}
                for way in times
                if way != "bare"
                for cost in [added(times, way, kind)]
            },
        }
        for kind in times["bare"]
    ]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=1000, help="in each turn")
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES))
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.calls < 1:
        parser.error("--rounds and --calls must be at least 1")
    with watch_others() as others:
        times = measure(arguments.stages, arguments.rounds, arguments.calls)
    show(times)
    print(others)
    if "tracing" in times:
        print(told_of_goal(times))
    RESULTS.parent.mkdir(exist_ok=True)
    conditions = {"blocks": BLOCKS, "turns": TURNS, "goal_ns": GOAL_NS}
    results = {**description(arguments, others), **conditions, "ns": rows_of(times)}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
