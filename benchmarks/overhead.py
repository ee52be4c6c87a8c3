"""What each stage and quick mode cost: the time under each divided by the bare time, alternating in one run.

    python benchmarks/overhead.py                                # all samples, 5 rounds
    python benchmarks/overhead.py --sample als --sample train --rounds 9
    python benchmarks/overhead.py --sample als --arguments 5 --arguments 20 --watch pages --watch trace

Bare really means bare: no gate, no Frida, the same file for its output. Each run of a stage follows its own bare run,
and their quotient is one sample. What a stage needs besides the program's run is listed separately: the preparation
(injection and hooks, while the program waits at the gate) and the work after it (reading recordings, writing documents
and tables). Programs run at real-time priority where that is permitted (root). A first pass of all stages is not
counted: it fills the driver's cache, and gives each stage its input. `--watch trace` makes stage 3 follow every load
and store; with both watches, it runs once with each in every round. `--quick` measures quick mode alone. Prints a table
for each sample; writes `benchmarks/results/overhead.json`, or `overhead_trace.json` if the trace is among the watches,
or `overhead_quick.json`, and a picture next to it.

    python benchmarks/overhead.py --strangers WORK --rounds 1    # programs of others, built by benchmarks/strangers

This measures those programs that ended well bare, in one second or more, as the work folder's records say, and writes
`overhead_strangers.json`.

    python benchmarks/overhead.py --command "./program 1 2" --stage memory --stage sync-use    # programs of your own
    python benchmarks/overhead.py --watched --stage memory --stage sync-use --rounds 3         # programs/watched.cu

The first runs commands in the current folder, as they are, and writes `overhead_commands.json`. The second measures
what watching memory could do too often, at two lengths each, and writes `overhead_watched.json`. With `--stage`, the
other stages run once only, to give these their input.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import chdir, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from common.building import build_cuda
from common.machine import description, undisturbed, watch_others
from common.pictures import new_figure
from common.twins import ARGUMENTS, NAMES
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from ffm.errors import FfmError
from ffm.results.documents.document import Document
from ffm.results.folder.paths import ResultsFolder
from ffm.stages.measure import Request, Watch
from ffm.stages.quick import run_quick
from ffm.stages.registry import MEASURING_STAGES
from ffm.vgpu.paths import library_folder, sample

sys.path.append(str(Path(__file__).with_name("strangers")))
from toolchain import prepare

RESULTS = Path(__file__).parent / "results"
QUICK = "quick"
SHORTEST_S = 1.0
"""Programs of others are measured if they take at least this long bare."""
GOALS = {"baseline": 1.02, "tracing": 1.15, "memory": 2.0, "sync-use": 1.15, QUICK: 1.15}
"""docs/architecture.md#goals. It has none for the trace."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A stage in the form in which it is measured, or the quick mode."""

    stage: str
    watch: Watch = "pages"

    @property
    def title(self) -> str:
        """Its name in tables and results."""
        return self.stage if self.watch == "pages" else f"{self.stage}, {self.watch}"


def passes_of(watches: list[Watch]) -> list[Pass]:
    """Return every stage, with the one that watches memory once per watch, and the quick mode."""
    usual: list[Watch] = ["pages"]
    stages = [Pass(name, watch) for name in MEASURING_STAGES for watch in (watches if name == "memory" else usual)]
    return [*stages, Pass(QUICK)]


@dataclass(slots=True)
class StageCost:
    """The samples of one stage, one per round. Times in seconds."""

    bare_s: list[float] = field(default_factory=list)
    wall_s: list[float] = field(default_factory=list)
    preparation_s: list[float] = field(default_factory=list)
    after_s: list[float] = field(default_factory=list)
    operations: int = 0

    @property
    def ratios(self) -> list[float]:
        """The program's time under the stage divided by that of the bare run before it."""
        return [wall / bare for wall, bare in zip(self.wall_s, self.bare_s, strict=True)]


WATCHED = {
    "ordered": (4_000, 16_000),
    "again": (40_000, 160_000),
    "polled": (5_000, 20_000),
    "read": (2_000, 8_000),
    "unread": (5_000, 20_000),
    "several": (1_000, 4_000),
    "written": (4_000, 16_000),
    "block": (250, 1_000),
    "kept": (1_000, 10_000),
}
"""The kinds of `programs/watched.cu`, and their turns."""


def run_bare(command: list[str], output: Path) -> float:
    """Run the program bare; return the seconds from before its start to its end."""
    with output.open("wb") as sink:
        began = time.monotonic()
        subprocess.run(command, stdout=sink, stderr=subprocess.STDOUT, check=True)
        return time.monotonic() - began


def run_stage(stage: str, request: Request, cost: StageCost) -> None:
    """Run one stage, or the quick mode in a folder of its own, and add its times."""
    began = time.monotonic()
    if stage == QUICK:
        document: Document = run_quick(replace(request, folder=ResultsFolder(request.folder.root / QUICK)))
    else:
        document = MEASURING_STAGES[stage](request)
    total = time.monotonic() - began
    run = document.run
    if run is None:
        raise RuntimeError(f"The document of stage {stage} describes no run.")
    cost.wall_s.append(run.wall_s)
    cost.preparation_s.append(run.preparation_s)
    cost.after_s.append(total - run.wall_s - run.preparation_s)
    cost.operations = sum(process.operations for process in run.processes)


def measure(
    command: list[str], passes: list[Pass], rounds: int, counted: Collection[str] | None = None
) -> list[dict[str, Any]]:
    """Return the results for each stage's cost, or for those of the stages `counted`."""
    chosen = [one for one in passes if counted is None or one.stage in counted]
    first = {one: StageCost() for one in passes}
    costs = {one: StageCost() for one in passes}
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="ffm-overhead-") as folder, Progress(console=console) as progress:
        bare_output = Path(folder) / "bare.log"
        steps = progress.add_task("running", total=len(passes) + rounds * len(chosen))
        for number in range(rounds + 1):
            for one in passes if number == 0 else chosen:
                progress.update(steps, description=f"round {number} of {rounds}: bare and {one.title}")
                request = Request(command, ResultsFolder(Path(folder)), None, one.watch)
                cost = (first if number == 0 else costs)[one]
                with undisturbed():
                    cost.bare_s.append(run_bare(command, bare_output))
                    run_stage(one.stage, request, cost)
                progress.advance(steps)
    return [summary(one, costs[one], first[one]) for one in chosen]


@contextmanager
def watched_programs() -> Iterator[list[tuple[str, list[str], Path]]]:
    """Give the names, commands and folders of `programs/watched.cu`, with kernels of 20 us that do nothing."""
    before = os.environ.get("VGPU_CONFIGURATION")
    with tempfile.TemporaryDirectory(prefix="ffm-watched-") as folder:
        program = build_cuda("watched", Path(folder))
        configuration = Path(folder) / "vgpu"
        configuration.write_text("kernel.default = 20\n")
        os.environ["VGPU_CONFIGURATION"] = str(configuration)
        try:
            yield [(kind, [str(program), kind, str(turns)], Path.cwd()) for kind in WATCHED for turns in WATCHED[kind]]
        finally:
            del os.environ["VGPU_CONFIGURATION"]
            if before is not None:
                os.environ["VGPU_CONFIGURATION"] = before


def strangers(work: Path) -> list[tuple[str, list[str], Path]]:
    """Return the names, commands and folders of the programs in a work folder of `benchmarks/strangers` that end well
    and are long enough to measure.
    """
    records = [json.loads(path.read_bytes()) for path in sorted((work / "records").glob("*.json"))]
    return [
        (record["name"], record["bare"]["words"], Path(record["build"]["folder"]))
        for record in records
        if record.get("bare", {}).get("ok") and record["bare"]["seconds"] >= SHORTEST_S
    ]


@contextmanager
def as_a_stranger(folder: Path) -> Iterator[None]:
    """Run in a program's own folder, with NVIDIA's runtime and the virtual GPU's driver for those that link to them."""
    before = os.environ.get("LD_LIBRARY_PATH")
    os.environ["LD_LIBRARY_PATH"] = f"{prepare(folder.parent / 'bin').libraries}:{library_folder()}"
    try:
        with chdir(folder):
            yield
    finally:
        if before is None:
            del os.environ["LD_LIBRARY_PATH"]
        else:
            os.environ["LD_LIBRARY_PATH"] = before


def summary(one: Pass, cost: StageCost, first: StageCost) -> dict[str, Any]:
    """Return the results for one stage, given its cost in the rounds and in the first, uncounted pass.

    Other load on the machine only adds time, so the quotient of the fastest runs is given next to the pairs' median.
    """
    middle = median(cost.ratios)
    goal = GOALS[one.stage] if one.watch == "pages" else None
    return {
        "stage": one.title,
        "goal": goal,
        "ratio_median": middle,
        "ratio_min": min(cost.ratios),
        "ratio_max": max(cost.ratios),
        "ratio_of_fastest": min(cost.wall_s) / min(cost.bare_s),
        "met": None if goal is None else middle <= goal,
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
            "-" if one["goal"] is None else f"{one['goal']:.2f}",
            {True: "yes", False: "[bold red]no", None: "-"}[one["met"]],
            f"{one['operations']:,}",
            f"{one['preparation_s_median']:.2f} s",
            f"{one['after_s_median']:.2f} s",
        )
    console = Console()
    console.width = max(console.width, 100)  # otherwise columns would be cut off
    console.print(table)


def explain() -> None:
    """Explain the columns."""
    print("median, min to max: of the pairs of a stage's run and the bare run before it; met: by the median")
    print("fastest: the fastest of these runs over the fastest of those; calls: recorded operations")
    print("before, after: preparation at the gate, and reading and writing; neither is part of the ratios")


def draw(samples: list[dict[str, Any]], path: Path) -> None:
    """Draw the median ratios of each sample with their range, and the goals; does nothing if matplotlib is missing."""
    figure = new_figure(8, 4)
    if figure is None:
        return
    names = [" ".join([sample["sample"], *sample["arguments"]]) for sample in samples]
    stages = samples[0]["stages"]
    columns = figure.subplots(1, len(stages), sharey=True, squeeze=False)[0]
    for place, (axes, stage) in enumerate(zip(columns, stages, strict=True)):
        found = [sample["stages"][place] for sample in samples]
        middles = [one["ratio_median"] for one in found]
        below = [one["ratio_median"] - one["ratio_min"] for one in found]
        above = [one["ratio_max"] - one["ratio_median"] for one in found]
        axes.errorbar(middles, names, xerr=[below, above], fmt="o", color="#4477aa", capsize=3)
        axes.axvline(1, color="#555555", linewidth=0.8)
        if stage["goal"] is not None:
            axes.axvline(stage["goal"], color="#c0392b", linewidth=0.8)
        goal = "no goal" if stage["goal"] is None else f"goal {stage['goal']}"
        axes.set_title(f"{stage['stage']}, {goal}", fontsize=9)
    columns[0].invert_yaxis()
    figure.supxlabel("time of the program over its bare time: median, min to max")
    figure.savefig(path)


def chosen_runs(arguments: argparse.Namespace) -> list[tuple[str, list[str], Path]]:
    """Return the names, commands and folders of what is to be measured."""
    if arguments.strangers:
        found = strangers(arguments.strangers.absolute())
        return [one for one in found if not arguments.programs or one[0] in arguments.programs]
    if arguments.commands:
        return [(Path(words[0]).name, words, Path.cwd()) for words in map(shlex.split, arguments.commands)]
    if arguments.arguments:
        runs = [(arguments.samples[0], shlex.split(words)) for words in arguments.arguments]
    else:
        runs = [(name, ARGUMENTS.get(name, [])) for name in arguments.samples or NAMES]
    return [(name, [str(sample(name)), *words], Path.cwd()) for name, words in runs]


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", dest="samples", action="append", choices=NAMES, help="default: all")
    parser.add_argument(
        "--arguments", action="append", help="arguments of the one named sample; repeat for further runs"
    )
    parser.add_argument(
        "--watch", dest="watches", action="append", choices=["pages", "trace"], help="watch of stage 3 [pages]"
    )
    parser.add_argument(
        "--strangers", type=Path, metavar="WORK", help="programs in a work folder of benchmarks/strangers"
    )
    parser.add_argument("--programs", nargs="+", metavar="NAME", help="of those, only these")
    parser.add_argument("--command", dest="commands", action="append", metavar="WORDS", help="a program of your own")
    parser.add_argument("--watched", action="store_true", help="programs that watching memory could slow down")
    parser.add_argument("--stage", dest="stages", action="append", choices=MEASURING_STAGES, help="default: all")
    parser.add_argument("--quick", action="store_true", help="measure quick mode alone")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of every stage, besides the first pass [5]")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.arguments and len(arguments.samples or ()) != 1:
        parser.error("--arguments needs exactly one --sample")
    passes = passes_of(list(dict.fromkeys(arguments.watches or ["pages"])))
    if arguments.quick:
        passes = [Pass(QUICK)]
    if arguments.stages:
        passes = [one for one in passes if one.stage != QUICK]
    samples = []
    failed: list[str] = []
    with (
        watch_others() as others,
        watched_programs() if arguments.watched else nullcontext(chosen_runs(arguments)) as runs,
    ):
        for name, command, folder in runs:
            try:
                with as_a_stranger(folder) if arguments.strangers else nullcontext():
                    stages = measure(command, passes, arguments.rounds, arguments.stages)
            except (FfmError, subprocess.CalledProcessError) as error:
                failed.append(f"{name}: {error}")
                continue
            show(stages, command)
            samples.append({"sample": name, "arguments": command[1:], "stages": stages})
    explain()
    print(others)
    kind = "_trace" if any(one.watch == "trace" for one in passes) else "_quick" if arguments.quick else ""
    for name in ("strangers", "commands", "watched"):
        if getattr(arguments, name):
            kind = f"_{name}"
    results = RESULTS / f"overhead{kind}.json"
    results.parent.mkdir(exist_ok=True)
    results.write_text(json.dumps({**description(arguments, others), "samples": samples}, indent=2) + "\n")
    draw(samples, results.with_suffix(".svg"))
    print(f"written to {results}")
    if failed:
        sys.exit("\n".join(["Without results:", *failed]))


if __name__ == "__main__":
    main()
