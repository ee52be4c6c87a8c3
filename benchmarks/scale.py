"""What measuring and analysing cost as runs grow: the real commands, on the same five driver calls over and over.

    python benchmarks/scale.py                  # 10^5 and 10^6 driver calls
    python benchmarks/scale.py --largest 7      # and 10^7
    python benchmarks/scale.py --up-to 8        # and the analysis of 10^7 and 10^8, from repeated tables
    python benchmarks/scale.py --up-to 8 --keep FOLDER    # go on where an earlier call with this folder ended

`programs/turns.c` uploads, launches, waits, launches and downloads, with 10,000 blocks of host memory allocated and one
of 64 GiB. For each size it runs bare, then under `ffm stage` of all five stages, and then the views look at the
results. Of each command this notes the seconds, the processor's seconds, the most memory of its largest process, and
what it left on the disk. What a stage takes after its run, and the cost of a call in the run, are told by its document.
With `--up-to`, stage 5 and the views also look at the largest run's tables repeated ten times and more
(`benchmarks/common/grown.py`). A view runs twice, and the second counts: the first fills the caches of a new machine.

After that come two steps that no command does alone, of which `reading.py` tells the nanoseconds of a row and the
seconds beside a sort of as many numbers: reading a recording, and choosing what `ffm apply-remedy` corrects.

With `--keep`, runs and costs stay in a folder, and a size that was measured there by the same ffm is not measured
again. Without it, 10^8 calls take some 40 GB below the temporary folder (`TMPDIR`), which are freed in the end.

Prints a table with the cost of one call at each size, which is flat where a command scales; writes
`benchmarks/results/scale.json` and a picture next to it. The picture tells each command's slope between the two largest
sizes: 1 if it takes ten times as long for ten times as many calls.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common.building import build
from common.grown import grow
from common.machine import Others, description, watch_others
from common.pictures import new_figure
from common.reading import Step, measure_steps
from rich.console import Console
from rich.table import Table

from ffm.results.columnar.tables import read_table
from ffm.results.folder.paths import STAGES
from ffm.stages.registry import MEASURING_STAGES

RESULTS = Path(__file__).parent / "results" / "scale.json"
CALLS_A_TURN = 5
BLOCKS = 10_000
FFM = str(Path(sys.executable).with_name("ffm"))
LAUNCHER = """
import json, resource, subprocess, sys, time
began = time.monotonic()
code = subprocess.call(sys.argv[2:])
seconds = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
with open(sys.argv[1], "w") as file:
    json.dump([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024], file)
sys.exit(code)
"""
"""Starts a command, and writes what it took. Linux counts the memory of whoever starts a process as memory that the
process used: this benchmark's own grows with the runs, and a launcher's is small.
"""

VIEWS = ("report", "path", "site", "sequence", "subsequence", "remedies")
COMMANDS = ("bare", *STAGES)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one command took: seconds, bytes."""

    command: str
    calls: int
    wall_s: float
    processor_s: float
    memory_bytes: int
    """Resident in the largest of its processes, at its peak."""
    disk_bytes: int = 0
    """How much the results folder has grown."""
    after_s: float | None = None
    """Of a measuring stage: what it took beside the program's run and its preparation."""
    ratio: float | None = None
    """Of a measuring stage: the program's seconds, as it prints them, divided by those of the bare program."""


def run(command: list[str], folder: Path) -> tuple[float, float, int]:
    """Run a command to its end; return its seconds, the processor's, and the most bytes that were resident.

    Raises:
        RuntimeError: It failed; the message is what it printed.
    """
    said, used = folder / "said", folder / "used"
    with said.open("wb") as sink:
        launched = [sys.executable, "-c", LAUNCHER, str(used), *command]
        process = subprocess.run(launched, cwd=folder, stdout=sink, stderr=subprocess.STDOUT, check=False)
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{said.read_text()}")
    seconds, processor_s, memory_bytes = json.loads(used.read_bytes())
    return seconds, processor_s, memory_bytes


def size_of(folder: Path) -> int:
    """Return the bytes that a folder's files take on the disk."""
    return sum(entry.stat().st_blocks * 512 for entry in folder.rglob("*") if entry.is_file())


def measure(program: Path, calls: int, folder: Path, console: Console) -> list[Cost]:
    """Run the program bare, all stages and all views, in a folder of their own."""
    results = folder / "results"
    results.mkdir()
    measured = [str(program), str(calls // CALLS_A_TURN), str(BLOCKS)]
    costs = [Cost("bare", calls, *run(measured, folder))]
    for stage in STAGES:
        console.print(f"{calls:,} calls: stage {stage}", highlight=False)
        command = [FFM, "stage", stage, "--results", "results"]
        before = size_of(results)
        if stage in MEASURING_STAGES:
            command += ["--", *measured]
        wall_s, processor_s, memory_bytes = run(command, folder)
        grown = size_of(results) - before
        after_s = ratio = None
        if stage in MEASURING_STAGES:
            document = json.loads((results / f"{stage}.json").read_bytes())["run"]
            after_s = wall_s - document["wall_s"] - document["preparation_s"]
            ratio = document["wall_s"] / costs[0].wall_s
        costs.append(Cost(stage, calls, wall_s, processor_s, memory_bytes, grown, after_s, ratio))
    return costs + measure_views(calls, folder)


def measure_views(calls: int, folder: Path) -> list[Cost]:
    """Run all views on the results in a folder."""
    results, costs = folder / "results", []
    for name in VIEWS:
        words = words_of(name, results)
        if words is None:
            continue
        command = [FFM, name, *words, "--results", "results"]
        run(command, folder)
        costs.append(Cost(name, calls, *run(command, folder)))
    return costs


def measure_grown(source: Path, calls: int, folder: Path, console: Console) -> list[Cost]:
    """Analyse the results of a run of this many calls, repeated from a shorter run's, and run all views on them."""
    console.print(f"{calls:,} calls: repeated", highlight=False)
    results = folder / "results"
    counted = len(read_table(source / "tracing-events.arrow")["start"])
    needed = 2 * sum(table.stat().st_size for table in source.glob("*.arrow")) * calls // counted
    if shutil.disk_usage(folder).free < needed:
        raise OSError(f"{folder} has no room for {calls:,} calls, which take {needed / 1e9:.0f} GB: see --keep")
    grow(source, results, round(calls / counted))
    before = size_of(results)
    took = run([FFM, "stage", "analysis", "--results", "results"], folder)
    return [Cost("analysis", calls, *took, size_of(results) - before), *measure_views(calls, folder)]


def words_of(view: str, results: Path) -> list[str] | None:
    """Return a view's arguments: the first sequence, the start of it, or the site that would save most.

    None if the results have nothing that the view could show.
    """
    if view == "site":
        told = subprocess.run([FFM, "report", "--json", "--results", str(results)], capture_output=True, check=True)
        rows = json.loads(told.stdout)["points"]["rows"]
        return [str(rows[0]["number"])] if rows else None
    if view not in ("sequence", "subsequence"):
        return []
    sequences = json.loads((results / "analysis.json").read_bytes())["sequences"]
    if not sequences:
        return None
    return ["1"] if view == "sequence" else ["1", str(max(len(sequences[0]["operations"]) - 1, 1))]


def show(costs: list[Cost]) -> None:
    """Print a row for each command and size."""
    table = Table(title=f"Commands on runs of {CALLS_A_TURN} calls a turn", title_justify="left")
    for heading in ("command", "calls"):
        table.add_column(heading, justify="right" if heading == "calls" else "left", no_wrap=True)
    for heading in ("s", "processor s", "after the run s", "us a call", "run / bare", "peak MiB", "disk B a call"):
        table.add_column(heading, justify="right")
    for cost in costs:
        table.add_row(
            cost.command,
            f"{cost.calls:,}",
            f"{cost.wall_s:.2f}",
            f"{cost.processor_s:.2f}",
            "" if cost.after_s is None else f"{cost.after_s:.2f}",
            f"{cost.wall_s / cost.calls * 1e6:.2f}",
            "" if cost.ratio is None else f"{cost.ratio:.2f}",
            f"{cost.memory_bytes / (1 << 20):,.0f}",
            f"{cost.disk_bytes / cost.calls:.0f}" if cost.disk_bytes else "",
        )
    Console(width=110).print(table)


def show_steps(steps: list[Step]) -> None:
    """Print a row for each step and size."""
    table = Table(title="Steps, beside sorting as many numbers", title_justify="left")
    table.add_column("step", no_wrap=True)
    for heading in ("calls", "rows", "ns a row", "sorts"):
        table.add_column(heading, justify="right")
    for step in steps:
        table.add_row(step.step, f"{step.calls:,}", f"{step.rows:,}", f"{step.nanoseconds:.0f}", f"{step.sorts:.1f}")
    Console(width=110).print(table)


def slope_of(costs: list[Cost]) -> float | None:
    """Return by which power of the calls a command's seconds grow between the two largest sizes; None for one size."""
    if len(costs) < 2:
        return None
    before, last = sorted(costs, key=lambda cost: cost.calls)[-2:]
    return math.log(last.wall_s / before.wall_s) / math.log(last.calls / before.calls)


def draw(costs: list[Cost], path: Path) -> None:
    """Draw seconds by number of calls, both logarithmic; does nothing if matplotlib is missing."""
    figure = new_figure(8, 4.5)
    if figure is None:
        return
    axes = figure.add_subplot()
    for name in dict.fromkeys(cost.command for cost in costs):
        mine = [cost for cost in costs if cost.command == name]
        place, style = (VIEWS.index(name), "--") if name in VIEWS else (COMMANDS.index(name), "-")
        label = f"{name} ({slope:.2f})" if (slope := slope_of(mine)) is not None else name
        axes.plot(
            [cost.calls for cost in mine],
            [cost.wall_s for cost in mine],
            style,
            color=f"C{place}",
            marker="o",
            label=label,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("driver calls of the run")
    axes.set_ylabel("seconds")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize="small", frameon=False)
    figure.savefig(path)


def measure_all(arguments: argparse.Namespace, place: Path, console: Console) -> tuple[list[Cost], list[Step], Others]:
    """Measure each size in a folder of its own; what the same ffm measured there before is read.

    Also returns the most that others did while a size was measured.
    """
    version = description(arguments, Others())["versions"]["ffm"]
    most = Others(0.0)
    program = build("turns", place)
    costs: list[Cost] = []
    steps: list[Step] = []
    for power in range(arguments.smallest, max(arguments.largest, arguments.up_to) + 1):
        folder = place / str(power)
        done = folder / "costs.json"
        kept = json.loads(done.read_bytes()) if done.is_file() else {}
        if kept.get("ffm") != version:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            took: list[Step] = []
            with watch_others() as others:
                if power <= arguments.largest:
                    found = measure(program, 10**power, folder, console)
                    took = measure_steps(10**power, folder / "results")
                else:
                    source = place / str(arguments.largest) / "results"
                    found = measure_grown(source, 10**power, folder, console)
            kept = {"ffm": version, "others": others.cores, "costs": [asdict(cost) for cost in found]}
            kept["steps"] = [asdict(step) for step in took]
            done.write_text(json.dumps(kept))
        costs += [Cost(**cost) for cost in kept["costs"]]
        steps += [Step(**step) for step in kept.get("steps", [])]
        most.cores = max(most.cores or 0.0, kept["others"])
    return costs, steps, most


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smallest", type=int, default=5, help="a power of ten")
    parser.add_argument("--largest", type=int, default=6, help="a power of ten")
    parser.add_argument("--up-to", type=int, default=0, help="a power of ten; above --largest, only the analysis")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where runs stay, for a later call")
    arguments = parser.parse_args()
    if not 2 <= arguments.smallest <= arguments.largest:
        parser.error("--smallest must be at least 2, and --largest at least that")
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="ffm-scale-") as temporary:
        place = Path(temporary) if arguments.keep is None else arguments.keep.absolute()
        place.mkdir(parents=True, exist_ok=True)
        costs, steps, others = measure_all(arguments, place, console)
    show(costs)
    show_steps(steps)
    print(others)
    RESULTS.parent.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = [asdict(cost) for cost in costs]
    found = {"blocks": BLOCKS, "costs": rows, "steps": [asdict(step) for step in steps]}
    RESULTS.write_text(json.dumps({**description(arguments, others), **found}, indent=2) + "\n")
    draw(costs, RESULTS.with_suffix(".svg"))
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
