"""What each stage costs: the program's time under each stage over its time bare, alternating in one run.

    python benchmarks/overhead.py                                # all samples, 5 rounds
    python benchmarks/overhead.py --sample als --sample train --rounds 9

Bare is really bare: no gate, no Frida, the same file for its output. Each stage's run follows a bare run of its own,
and their quotient is one sample. What a stage takes beside the program's run stands apart: the preparation (injection
and hooks, while the program waits at the gate) and the work after it (reading recordings, writing documents and
tables). Programs run at real-time priority where that is permitted (root). A first pass of all stages is not counted:
it fills the driver's cache, and gives each stage what it feeds on. Prints a table for each sample; writes
`benchmarks/results/overhead.json` and a picture beside it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from machine import description, undisturbed, watch_others
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ffm.stages.folder import ResultsFolder
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from ffm.vgpu.paths import sample

RESULTS = Path(__file__).parent / "results" / "overhead.json"
GOALS = {"baseline": 1.02, "tracing": 1.15, "memory": 2.0, "sync-use": 1.15}
"""Design, section 10."""

ARGUMENTS: dict[str, list[str]] = {
    name: ["40"] if name == "als" else []
    for name in ("als", "amg", "fft", "flag", "gaussian", "ibm", "overlap", "train")
}
"""The samples, with arguments for a run of one to two seconds."""


@dataclass(slots=True)
class StageCost:
    """The samples of one stage, one for each round. Times in seconds."""

    bare_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    preparation_s: list[float] = field(default_factory=list)
    after_s: list[float] = field(default_factory=list)
    operations: int = 0

    @property
    def ratios(self) -> list[float]:
        """The program's time under the stage over that of the bare run before it."""
        return [wall / bare for wall, bare in zip(self.wall_s, self.bare_s, strict=True)]


def run_bare(command: list[str], output: Path) -> float:
    """Run the program by itself; seconds from before its start to its end."""
    with output.open("wb") as sink:
        began = time.monotonic()
        subprocess.run(command, stdout=sink, stderr=subprocess.STDOUT, check=True)
        return time.monotonic() - began


def run_stage(name: str, request: Request, cost: StageCost) -> None:
    """Run one stage and add what it took."""
    began = time.monotonic()
    document = MEASURING_STAGES[name](request)
    total = time.monotonic() - began
    run = document.run
    if run is None:
        raise RuntimeError(f"The document of stage {name} describes no run.")
    cost.wall_s.append(run.wall_s)
    cost.preparation_s.append(run.preparation_s)
    cost.after_s.append(total - run.wall_s - run.preparation_s)
    cost.operations = sum(process.operations for process in run.processes)


def measure(command: list[str], rounds: int) -> tuple[dict[str, StageCost], dict[str, StageCost]]:
    """Return each stage's cost in the first, uncounted pass and in the rounds."""
    first = {name: StageCost() for name in MEASURING_STAGES}
    costs = {name: StageCost() for name in MEASURING_STAGES}
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="ffm-overhead-") as folder, Progress(console=console) as progress:
        request = Request(command, ResultsFolder(Path(folder)), timeout_s=None)
        bare_output = Path(folder) / "bare.log"
        steps = progress.add_task("running", total=(rounds + 1) * len(MEASURING_STAGES))
        for number in range(rounds + 1):
            for name in MEASURING_STAGES:
                progress.update(steps, description=f"round {number} of {rounds}: bare and {name}")
                cost = (first if number == 0 else costs)[name]
                with undisturbed():
                    cost.bare_s.append(run_bare(command, bare_output))
                    run_stage(name, request, cost)
                progress.advance(steps)
    return first, costs


def summary(name: str, cost: StageCost, first: StageCost) -> dict[str, Any]:
    """Return what the results say of one stage.

    What else a machine does only adds to a time, so the quotient of the fastest runs stands beside the pairs' median.
    """
    middle = median(cost.ratios)
    return {
        "stage": name,
        "goal": GOALS[name],
        "ratio_median": middle,
        "ratio_min": min(cost.ratios),
        "ratio_max": max(cost.ratios),
        "ratio_of_fastest": min(cost.wall_s) / min(cost.bare_s),
        "met": middle <= GOALS[name],
        "operations": cost.operations,
        "added_us_per_operation": (middle - 1) * median(cost.bare_s) / max(cost.operations, 1) * 1e6,
        "preparation_s_median": median(cost.preparation_s),
        "preparation_s_first": first.preparation_s[0],
        "after_s_median": median(cost.after_s),
        "rounds": {
            "bare_s": cost.bare_s,
            "wall_s": cost.wall_s,
            "preparation_s": cost.preparation_s,
            "after_s": cost.after_s,
        },
    }


def show(stages: list[dict[str, Any]], command: list[str]) -> None:
    """Print the table."""
    table = Table(title=f"Time under each stage over bare: {Path(command[0]).name} {' '.join(command[1:])}")
    for title in ("stage", "median", "min to max", "fastest", "goal", "met", "calls", "before", "after"):
        table.add_column(title, justify="left" if title == "stage" else "right", no_wrap=True)
    for one in stages:
        table.add_row(
            one["stage"],
            f"{one['ratio_median']:.3f}",
            f"{one['ratio_min']:.3f} to {one['ratio_max']:.3f}",
            f"{one['ratio_of_fastest']:.3f}",
            f"{one['goal']:.2f}",
            "yes" if one["met"] else "[bold red]no",
            f"{one['operations']:,}",
            f"{one['preparation_s_median']:.2f} s",
            f"{one['after_s_median']:.2f} s",
        )
    console = Console()
    console.width = max(console.width, 90)  # columns would be cut off
    console.print(table)


def explain() -> None:
    """Print what the columns are."""
    print("median, min to max: of the pairs of a stage's run and the bare run before it; met: by the median")
    print("fastest: the fastest of these runs over the fastest of those; calls: recorded operations")
    print("before, after: preparation at the gate, and reading and writing; neither is part of the ratios")


def draw(samples: list[dict[str, Any]], path: Path) -> None:
    """Draw the median ratios of each sample with their range, and the goals."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4), layout="constrained")
    columns = figure.subplots(1, len(GOALS), sharey=True)
    for axes, (stage, goal) in zip(columns, GOALS.items(), strict=True):
        found = [next(one for one in sample["stages"] if one["stage"] == stage) for sample in samples]
        middles = [one["ratio_median"] for one in found]
        below = [one["ratio_median"] - one["ratio_min"] for one in found]
        above = [one["ratio_max"] - one["ratio_median"] for one in found]
        names = [sample["sample"] for sample in samples]
        axes.errorbar(middles, names, xerr=[below, above], fmt="o", color="#4477aa", capsize=3)
        axes.axvline(1, color="#555555", linewidth=0.8)
        axes.axvline(goal, color="#c0392b", linewidth=0.8)
        axes.set_title(f"{stage}, goal {goal}", fontsize=9)
    columns[0].invert_yaxis()
    figure.supxlabel("time of the program over its bare time: median, min to max")
    figure.savefig(path)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", action="append", choices=sorted(ARGUMENTS), help="default: all")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    head = description()
    samples = []
    with watch_others() as others:
        for name in arguments.sample or ARGUMENTS:
            command = [str(sample(name)), *ARGUMENTS[name]]
            first, costs = measure(command, arguments.rounds)
            stages = [summary(stage, costs[stage], first[stage]) for stage in MEASURING_STAGES]
            show(stages, command)
            samples.append({"sample": name, "arguments": ARGUMENTS[name], "stages": stages})
    explain()
    print(others)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({**head, "others_cores": others.cores, "samples": samples}, indent=2) + "\n")
    draw(samples, RESULTS.with_suffix(".svg"))
    print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
