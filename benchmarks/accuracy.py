"""Are the estimates accurate? For each sample and twin: the estimate, and what the corrected twin really saves.

    python benchmarks/accuracy.py                                # all samples, 15 rounds, 5 measurements
    python benchmarks/accuracy.py --sample als --sample ibm --rounds 25 --measurements 9
    python benchmarks/accuracy.py --perturb 100 --rounds 3       # on 100 virtual GPUs drawn at random

The truth files next to the samples (`ffm/vgpu/samples/*.truth.toml`) say which call sites a twin corrects; the estimate
is for exactly these, together. In each round the sample and its twins run bare, one after the other, and in some rounds
stage 2 runs in between; stages 1, 3 and 4 run once. The saving is the median of the differences within a round. It is
given with its quartiles and, from six rounds on, with a 95 % confidence interval (from the order of the differences:
Conover, Practical Nonparametric Statistics, 3.2). The estimate is the median of the estimates from each run of stage 2,
with the interval of the run that gave it.

Where permitted (root), programs run at real-time priority (SCHED_FIFO), so that other processes take no CPU time from
them. Otherwise, or with more threads than CPUs, expect single runs to differ by more than the smaller savings.

If the program needs a twin's waits as it is written (a twin reads the status later, or orders streams by an event), or
ffm does not call them unnecessary, `named` is false, and the estimate is what removing them would save according to
`ffm site`. `named_share` says how much of the waiting time counts as unnecessary. Prints a table; writes
`benchmarks/results/accuracy.json` and a picture next to it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from math import comb
from pathlib import Path
from random import Random
from statistics import median, quantiles
from typing import Any

import numpy as np
from common.machine import description, undisturbed, watch_others
from common.perturbing import busy_core, perturbed_gpu
from common.pictures import new_figure
from common.twins import NAMES, command_of, exit_status, measure_each, sample_parser, truth_of, write_rows
from rich.console import Console
from rich.table import Table

from ffm.model.timeline import Problem
from ffm.results.documents.analysis import Analysis
from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import open_results
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from ffm.vgpu.paths import sample as path_of

RESULTS = Path(__file__).parent / "results" / "accuracy.json"
PERTURBED = RESULTS.with_name("accuracy_perturbed.json")
GOAL = (0.9, 1.1)
"""docs/architecture.md#goals: estimate over measured saving."""

NAMED = 0.9
"""A twin's problem counts as named if this share of the waiting time at its call sites counts as unnecessary."""

RANKS = {"amg": 2}
"""Samples that run under an MPI launcher, if there is one, with this many processes."""

REST = 0.2
"""After a run comes a rest of this many times its length: Linux stops processes at real-time priority for the last 50
ms of each second that they use up (`kernel.sched_rt_runtime_us`), which makes one run in a few that much longer.
"""

CORES_A_RANK = 4
"""A launcher is used only if each rank has this many cores, for its own threads and those of its virtual GPU."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What ffm says about some call sites of the truth."""

    seconds: dict[str, float | None]
    """What correcting them saves, by each estimator; None if it has no answer."""
    interval: tuple[float | None, float | None]
    named: bool
    """Whether they are named as problems; otherwise the seconds are for removing the waits there."""
    share: float
    """How much of the time waited at them has a verdict as a problem."""
    default: str
    """The estimator whose answer counts."""
    explained: float | None

    @property
    def likely_s(self) -> float:
        """The seconds by the estimator that counts."""
        return self.seconds[self.default] or 0.0


def launched(program: str, name: str) -> list[str]:
    """Return the command line of a sample or twin, under a launcher if it has ranks and there is room for them."""
    launcher = shutil.which("mpirun")
    enough = (os.cpu_count() or 1) >= CORES_A_RANK * RANKS.get(name, 0)
    ranks = [launcher, "-n", str(RANKS[name])] if launcher and name in RANKS and enough else []
    return [*ranks, *command_of(program, name)]


def run_bare(command: list[str]) -> float:
    """Run a program bare, and rest; return the seconds from before its start to its end."""
    with undisturbed():
        began = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        took = time.monotonic() - began
    time.sleep(REST * took)
    return took


def run_stage(stage: str, request: Request) -> None:
    """Run a measuring stage."""
    with undisturbed():
        MEASURING_STAGES[stage](request)


def is_measured(number: int, rounds: int, measurements: int) -> bool:
    """Whether stage 2 runs after round `number` of `rounds`: after the first one, and `measurements` times in all."""
    return number * measurements // rounds != (number - 1) * measurements // rounds


def measure(name: str, rounds: int, measurements: int, folder: ResultsFolder) -> list[dict[str, Any]]:
    """Measure a sample and its twins; return one row of the result per twin."""
    twins = truth_of(name)
    bare: list[float] = []
    fixed: dict[str, list[float]] = {twin: [] for twin in twins}
    found: dict[str, list[Estimate]] = {twin: [] for twin in twins}
    request = Request(launched(name, name), folder, 300.0)
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        run_stage(stage, request)
    for number in range(rounds):
        bare.append(run_bare(launched(name, name)))
        for twin in twins:
            fixed[twin].append(run_bare(launched(twin, name)))
        if is_measured(number, rounds, measurements):
            run_stage("tracing", request)
            run_analysis(folder)
            for twin, entries in twins.items():
                found[twin].append(estimate(folder.root, entries))
    return [row(name, twin, found[twin], bare, fixed[twin]) for twin in twins]


def estimate(folder: Path, entries: list[dict[str, Any]]) -> Estimate:
    """Return the estimate that the results in a folder give for some call sites of the truth."""
    results = open_results(folder)
    timeline, document = results.timeline, results.document
    sites = [index for index in range(len(document.sites)) if any(is_at(document, index, one) for one in entries)]
    rows = np.isin(timeline.site, sites)
    waiting = rows & (timeline.wait > 0)
    waited = int(timeline.wait[waiting].sum())
    named = (timeline.problem & Problem.UNNECESSARY_SYNCHRONIZATION) != 0  # not those that are to be moved
    share = int(timeline.wait[waiting & named].sum()) / waited if waited else 0.0
    benefit = results.estimates.of_rows(rows)
    seconds = {"replay": benefit.replay_s, "carry": benefit.carry_s, "bound": benefit.bound_s}
    interval = benefit.low_s, benefit.high_s
    needed = all(one["synchronization"] == "required" for one in entries)
    without = results.estimates.without(waiting) if needed or share < NAMED else None
    if without is not None:
        seconds = {"replay": without.likely_s, "carry": None, "bound": None}
        interval = without.low_s, without.high_s
    return Estimate(
        seconds,
        interval,
        named=share >= NAMED and not needed,
        share=share,
        default=document.estimator,
        explained=document.explained.share if document.explained else None,
    )


def is_at(document: Analysis, index: int, entry: dict[str, Any]) -> bool:
    """Return whether a site's stack contains the truth's call site."""
    frames = document.stacks[document.sites[index].stack].frames
    return any(Path(frame.file).name == entry["file"] and frame.line == entry["line"] for frame in frames)


def interval_of_median(values: list[float]) -> list[float]:
    """Return the order statistics that enclose the sampled median with 95 % confidence."""
    ordered = sorted(values)
    outside, below = 0, 0.0
    for place in range(len(ordered) // 2):
        below += comb(len(ordered), place) / 2 ** len(ordered)
        if 2 * below > 0.05:
            break
        outside = place + 1
    first = max(outside - 1, 0)
    return [ordered[first], ordered[-1 - first]]


def row(name: str, twin: str, found: list[Estimate], bare: list[float], fixed: list[float]) -> dict[str, Any]:
    """Return a row of the result."""
    pairs = [before - after for before, after in zip(bare, fixed, strict=True)]
    measured = median(pairs)
    found = sorted(found, key=lambda one: one.likely_s)
    middle = found[len(found) // 2]
    own = middle.likely_s
    low, high = middle.interval
    quartiles = quantiles(pairs, n=4) if len(pairs) > 1 else [measured] * 3
    return {
        "sample": name,
        "twin": twin,
        "estimate_s": own,
        "interval_s": [low, high],
        "measured_s": measured,
        "measured_quartiles_s": [quartiles[0], quartiles[2]],
        "measured_interval_s": interval_of_median(pairs),
        "ratio": own / measured if measured > 0 else None,
        "holds": low is not None and high is not None and low <= measured <= high,
        "estimates_s": [one.likely_s for one in found],
        "estimators_s": middle.seconds,
        "ratios": {
            key: value / measured if value is not None and measured > 0 else None
            for key, value in middle.seconds.items()
        },
        "named": middle.named,
        "named_share": middle.share,
        "explained_share": middle.explained,
        "bare_s": bare,
        "twin_s": fixed,
    }


def optional(value: float | None, digits: int = 4) -> str:
    """Format a number that may be unknown."""
    return "-" if value is None else f"{value:.{digits}f}"


def spread(seconds: list[float]) -> float:
    """Return the share of the median that the middle half of some times spans."""
    low, _, high = quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3
    return (high - low) / median(seconds)


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table(title="Estimate and measured saving, seconds")
    headers = ("twin", "bare", "measured", "of 95 %", "estimate", "from", "to", "ratio", "carry", "bound", "named")
    for header in headers:
        table.add_column(header, justify="left" if header == "twin" else "right")
    for one in rows:
        table.add_row(
            one["twin"],
            optional(median(one["bare_s"]), 3),
            optional(one["measured_s"]),
            "-".join(optional(value) for value in one["measured_interval_s"]),
            optional(one["estimate_s"]),
            optional(one["interval_s"][0]),
            optional(one["interval_s"][1]),
            optional(one["ratio"], 2),
            optional(one["ratios"]["carry"], 2),
            optional(one["ratios"]["bound"], 2),
            f"{one['named_share']:.0%}",
        )
    Console(width=140).print(table)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw each twin's ratios with the interval; does nothing if matplotlib is missing."""
    shown = [one for one in rows if one["measured_s"] > 0]
    figure = new_figure(8, 0.5 * len(shown) + 1.6)
    if figure is None:
        return
    axes = figure.add_subplot()
    axes.axvspan(*GOAL, color="#cce8cc", label="goal")
    named: set[str] = set()
    for place, one in enumerate(reversed(shown)):
        low, high = ((bound or 0.0) / one["measured_s"] for bound in one["interval_s"])
        axes.plot([low, high], [place, place], color="#4477aa", linewidth=3, solid_capstyle="butt")
        for name, mark, colour in (("bound", "^", "#bbbbbb"), ("carry", "s", "#cc9955"), ("replay", "o", "#224466")):
            if one["ratios"][name] is not None:
                axes.plot(one["ratios"][name], place, mark, color=colour, label=None if name in named else name)
                named.add(name)
    axes.set_yticks(range(len(shown)), [one["twin"] for one in reversed(shown)])
    axes.set_xlim(0, 2)
    axes.set_xlabel("estimate / measured saving; the bar is the interval")
    axes.legend(loc="upper right")
    figure.savefig(path, dpi=120)


def main() -> int:
    """Measure, print and write; return 1 if a sample could not be measured."""
    parser = sample_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="runs of each program [15]")
    parser.add_argument(
        "--measurements",
        type=int,
        default=5,
        help="runs of stage 2 between them, at most one a round [5]; with --perturb, it is one",
    )
    parser.add_argument(
        "--perturb",
        type=int,
        metavar="N",
        help="measure once on each of N virtual GPUs, whose latencies, bandwidths, kernels and calls take half to "
        "twice as long; a core is kept busy in every second one",
    )
    parser.add_argument("--seed", type=int, default=0, help="of what is drawn [0]")
    arguments = parser.parse_args()
    check(parser, arguments)
    if arguments.perturb is not None:
        return perturb(arguments)

    def measured(name: str, folder: Path) -> list[dict[str, Any]]:
        return measure(name, arguments.rounds, arguments.measurements, ResultsFolder(folder))

    with watch_others() as others:
        rows, failed = measure_each(arguments.samples, measured, show)
    show(rows)
    known = [one["ratio"] for one in rows if one["ratio"] is not None]
    met = sum(GOAL[0] <= ratio <= GOAL[1] for ratio in known)
    held = sum(one["holds"] for one in rows)
    print(f"{held} of {len(rows)} intervals contain the measured saving.")
    print(f"{met} of {len(rows)} ratios are within {GOAL[0]} to {GOAL[1]}.")
    if rows:
        spreads = [spread(one["bare_s"]) for one in rows]
        print(
            f"The middle half of a sample's bare times spans {min(spreads):.0%} to {max(spreads):.0%} of their median."
        )
    print(others)
    head = {**description(arguments, others), "goal": GOAL}
    draw(write_rows(RESULTS, head, rows), RESULTS.with_suffix(".png"))
    return exit_status(failed)


def measure_perturbed(name: str, folder: Path, *, random: Random, busy: bool, rounds: int) -> list[dict[str, Any]]:
    """Measure a sample and its twins on a virtual GPU that is drawn from its own."""
    with perturbed_gpu(path_of(name).with_suffix(".vgpu"), folder, random), busy_core(busy=busy):
        return measure(name, rounds, 1, ResultsFolder(folder / "results"))


def perturb(arguments: argparse.Namespace) -> int:
    """Measure samples in turn, each on a virtual GPU of its own; print and write how many intervals hold."""
    random = Random(arguments.seed)
    names = arguments.samples or NAMES
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    with watch_others() as others:
        for number in range(arguments.perturb):
            name, busy = names[number % len(names)], number // len(names) % 2 == 1
            measured = partial(measure_perturbed, random=random, busy=busy, rounds=arguments.rounds)
            found, missing = measure_each([name], measured, show)
            rows += [{**one, "number": number, "busy": busy} for one in found]
            failed += missing
    for busy in (False, True):
        of_kind = [one for one in rows if one["busy"] == busy]
        held = sum(one["holds"] for one in of_kind)
        print(f"{'A core kept busy' if busy else 'Undisturbed'}: {held} of {len(of_kind)} intervals hold.")
    print(others)
    PERTURBED.write_text(json.dumps({**description(arguments, others), "rows": rows}, indent=2) + "\n")
    return exit_status(failed)


def check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Refuse impossible numbers of runs."""
    if arguments.perturb is not None and arguments.perturb < 1:
        parser.error(f"--perturb {arguments.perturb}: at least one virtual GPU is needed")
    if arguments.rounds < 1:
        parser.error(f"--rounds {arguments.rounds}: at least one round is needed")
    if arguments.perturb is None and not 1 <= arguments.measurements <= arguments.rounds:
        parser.error(
            f"--measurements {arguments.measurements}: there is at most one a round, so 1 to {arguments.rounds} "
            "(--rounds) of them"
        )


if __name__ == "__main__":
    sys.exit(main())
