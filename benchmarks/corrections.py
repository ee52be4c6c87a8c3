"""Does correcting automatically save as much as correcting by hand? All samples, `apply-remedy --all`.

    python benchmarks/corrections.py                              # all samples, 7 runs each
    python benchmarks/corrections.py --sample als --runs 15

For each sample and each of its twins, which are the sample corrected by hand: the stages run once; then the sample, the
sample corrected in the running process, and the twin run in turn. Prints the problems remedied, the operations removed,
the medians of the times, the savings and the estimate, and whether the corrected program wrote the same output in every
run. Writes `benchmarks/results/corrections.json` and a picture next to it.
"""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from common.machine import description, watch_others
from common.pictures import new_figure
from common.twins import command_of, exit_status, measure_each, sample_parser, truth_of, write_rows
from rich.console import Console
from rich.table import Table

from ffm.errors import FfmError
from ffm.remedy.correct import compare_runs
from ffm.remedy.plan_file import Correction
from ffm.remedy.selection import plan
from ffm.remedy.worth import worthwhile_in
from ffm.report.remedies.outcome import Outcome, outcome
from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import Results, open_results
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES

RESULTS = Path(__file__).parent / "results" / "corrections.json"
NOISE = 0.02
"""Savings that differ by less than this share of the run count as equal: medians of runs vary by this much."""
LONGEST_S = 300.0


def measured(name: str, folder: Path) -> Results:
    """Measure a sample once."""
    request = Request(command_of(name, name), ResultsFolder(folder), LONGEST_S)
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        MEASURING_STAGES[stage](request)
    run_analysis(request.folder)
    return open_results(folder)


def compared(name: str, twin: str, results: Results, runs: int) -> Outcome:
    """Run a sample uncorrected, corrected, and corrected by hand.

    Each runs in one process: Frida's start-up time is subtracted only for the first process, and several ranks would
    wait for each other's.

    Raises:
        FfmError: Nothing in it can be corrected.
    """
    worth = worthwhile_in(results, plan(results.document, list(Correction)))
    if not worth.planned:
        raise FfmError("no call site can be corrected with a gain")
    comparison = compare_runs(
        command_of(name, name),
        worth.planned,
        runs=runs,
        files=[],
        twin=command_of(twin, name),
        timeout_s=LONGEST_S,
    )
    return outcome(results, comparison, results.document.command, None, worth.left, worth.costs)


def row(name: str, twin: str, found: Outcome) -> dict[str, Any]:
    """Return a row of the result."""
    by_hand = found.twin_saving_s or 0.0
    return {
        "sample": name,
        "twin": twin,
        "as_good_as_by_hand": found.saving_s >= by_hand - NOISE * found.bare_s,
        "share_of_by_hand": found.saving_s / by_hand if by_hand > NOISE * found.bare_s else None,
        "unchanged": not found.differences,
        **{key: value for key, value in dataclasses.asdict(found).items() if key not in ("application", "command")},
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table(title="Correcting automatically and by hand: medians, seconds")
    for header in (
        "twin",
        "call sites",
        "syncs removed",
        "bare",
        "corrected",
        "saved",
        "by hand",
        "estimated",
        "output",
    ):
        table.add_column(header, justify="left" if header == "twin" else "right")
    for one in rows:
        counts = one["remedies"]
        table.add_row(
            one["twin"],
            f"{sum(count['remedied'] for count in counts)} of {sum(count['planned'] for count in counts)}",
            f"{one['synchronizations_removed']:,}",
            f"{one['bare_s']:.3f}",
            f"{one['corrected_s']:.3f}",
            f"{one['saving_s']:.3f}",
            f"{one['twin_saving_s']:.3f}",
            f"{one['estimate_s']:.3f}",
            "the same" if one["unchanged"] else "CHANGED",
        )
    Console(width=140).print(table)
    for one in rows:
        told = ", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in one["removed"].items())
        print(f"{one['twin']}: {told or 'nothing removed'}")
        for difference in one["differences"]:
            print(f"  {difference}")


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the savings as shares of the run; does nothing if matplotlib is missing."""
    figure = new_figure(8, 0.7 * len(rows) + 1.4)
    if figure is None:
        return
    axes = figure.add_subplot()
    bars = (("saving_s", "corrected automatically", "#224466"), ("twin_saving_s", "corrected by hand", "#99bbcc"))
    for place, one in enumerate(reversed(rows)):
        for shift, (key, label, colour) in enumerate(bars):
            share = 100 * one[key] / one["bare_s"]
            axes.barh(place + 0.2 - 0.4 * shift, share, 0.36, color=colour, label=None if place else label)
        estimate = 100 * one["estimate_s"] / one["bare_s"]
        axes.plot([estimate] * 2, [place - 0.4, place + 0.4], color="#cc6633", label=None if place else "estimate")
    axes.set_yticks(range(len(rows)), [one["twin"].replace("_fixed", "") for one in reversed(rows)])
    axes.set_xlabel("saved, % of the run")
    axes.legend(loc="best")
    figure.savefig(path, dpi=120)


def main() -> int:
    """Measure, print and write; return 1 if a sample could not be measured."""
    parser = sample_parser(__doc__)
    parser.add_argument("--runs", type=int, default=7, help="of each program [7]")
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error(f"--runs {arguments.runs}: at least one run is needed")

    def rows_of(name: str, folder: Path) -> list[dict[str, Any]]:
        results = measured(name, folder)
        return [row(name, twin, compared(name, twin, results, arguments.runs)) for twin in truth_of(name)]

    with watch_others() as others:
        rows, failed = measure_each(arguments.samples, rows_of, show)
    show(rows)
    met = sum(one["as_good_as_by_hand"] for one in rows)
    print(f"{met} of {len(rows)} save as much as by hand, within {NOISE:.0%} of the run; {others}.")
    head = {**description(arguments, others), "noise": NOISE}
    draw(write_rows(RESULTS, head, rows), RESULTS.with_suffix(".png"))
    return exit_status(failed)


if __name__ == "__main__":
    sys.exit(main())
