"""What each stage adds to each kind of driver call: uploads, downloads, launches, waits, allocations and more.

    python benchmarks/kinds.py
    python benchmarks/kinds.py --rounds 5 --stages tracing

`programs/kinds.c` makes every kind of call in turn from a depth of 16 frames, with 10,000 blocks of the heap and one of
64 GiB allocated, on a virtual GPU whose own calls take as little time as they can. It runs bare and under each stage,
all in each round. The cost of a call is the processor time that the calling thread spends on it, the least of several
turns and of all rounds, minus that of the bare program: so neither waiting nor other programs count. Four kinds are no
driver calls: allocations of the heap, a system call and a clock, which stages watch too. A kind whose name holds two
calls costs as much as both.

Prints a table; writes `benchmarks/results/kinds.json`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from building import build
from machine import description, watch_others
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

Times = dict[str, dict[str, float]]
"""By way and kind: the least nanoseconds of the processor for one call."""


def calls_in(kind: str) -> int:
    """Return how many driver calls one execution of a kind makes; 1 for what is none.

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
                    least = times.setdefault(way, {})
                    least[kind] = min(least.get(kind, float("inf")), float(told))
                progress.advance(steps)
    return times


def run_bare(request: Request) -> None:
    """Run the program without ffm."""
    subprocess.run(request.command, check=True)


def added(times: Times, way: str, kind: str) -> float:
    """Return the nanoseconds that a stage adds to one call of a kind."""
    return (times[way][kind] - times["bare"][kind]) / calls_in(kind)


def show(times: Times) -> None:
    """Print a row for each kind."""
    stages = [way for way in times if way != "bare"]
    table = Table(title="Added to a call, ns of the processor", title_justify="left")
    table.add_column("kind", no_wrap=True)
    for heading in ("bare", *stages):
        table.add_column(heading, justify="right", no_wrap=True)
    for kind, bare in times["bare"].items():
        table.add_row(kind, f"{bare / calls_in(kind):,.0f}", *(f"{added(times, stage, kind):,.0f}" for stage in stages))
    Console().print(table)


def above_goal(times: Times) -> list[str]:
    """Return the kinds of driver calls to which stage 2 adds more than the goal."""
    return [
        kind for kind in times["bare"] if kind not in NOT_CALLS and added(times, "tracing", kind) > GOAL_NS
    ]  # fmt: skip


def rows_of(times: Times) -> list[dict[str, str | int | float]]:
    """Return the results for each kind, as they are written."""
    return [
        {"kind": kind, "calls": calls_in(kind), **{way: times[way][kind] for way in times}} for kind in times["bare"]
    ]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=1000, help="in each turn")
    parser.add_argument("--stages", nargs="+", choices=list(STAGES), default=list(STAGES))
    arguments = parser.parse_args()
    if arguments.rounds < 1 or arguments.calls < 1:
        parser.error("--rounds and --calls must be at least 1")
    with watch_others() as others:
        times = measure(arguments.stages, arguments.rounds, arguments.calls)
    show(times)
    print(others)
    over = above_goal(times) if "tracing" in times else []
    print(f"kinds above the goal of {GOAL_NS} ns in stage 2: {', '.join(over) or 'none'}")
    RESULTS.parent.mkdir(exist_ok=True)
    conditions = {"blocks": BLOCKS, "turns": TURNS, "goal_ns": GOAL_NS}
    results = {**description(arguments, others), **conditions, "ns": rows_of(times)}
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
