"""Is a correction made only where it pays? Small programs in which each kind of correction pays, or does not.

    python benchmarks/paying.py                                 # all kinds, 7 runs each
    python benchmarks/paying.py --kind upload-of-little --runs 15

`programs/paying.cu` repeats one kind of problem. For each kind the stages run once. Then the program runs in turn as it
is, with the corrections that are expected to pay (as `apply-remedy` with all corrections named), and with all that fit,
expected to pay or not: so it shows what comparing them while the program runs is worth. Prints, for each kind, the
medians, whether the difference is more than runs differ by, and what was found.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from common.building import build_cuda
from common.machine import watch_others
from rich.console import Console
from rich.table import Table

from ffm.remedy.correct import compare_runs
from ffm.remedy.plan_file import Correction, Planned
from ffm.remedy.selection import plan
from ffm.remedy.worth import Costs, worthwhile_in
from ffm.report.remedies.outcome import Outcome, outcome
from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import Results, open_results
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES

KINDS = {
    "wait-overlaps": 600,
    "wait-is-over": 1000,
    "wait-moves": 1000,
    "free-overlaps": 600,
    "free-of-idle": 4000,
    "upload-of-same": 60,
    "upload-repeats-rarely": 60,
    "upload-overlaps": 600,
    "upload-of-little": 5000,
    "download-used-later": 600,
    "download-used-soon": 1000,
}
"""Turns of each kind: about half a second."""

CONFIGURATION = "kernel.step = 200\n"
LONGEST_S = 60.0


def measured(command: list[str], folder: Path) -> Results:
    """Measure a program once."""
    request = Request(command, ResultsFolder(folder), LONGEST_S)
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        MEASURING_STAGES[stage](request)
    run_analysis(request.folder)
    return open_results(folder)


def compared(results: Results, command: list[str], planned: list[Planned], runs: int) -> Outcome | None:
    """Run the program as it is and with these corrections; None if there are none."""
    if not any(site.corrections for site in planned):
        return None
    comparison = compare_runs(command, planned, runs=runs, files=[], timeout_s=LONGEST_S)
    return outcome(results, comparison, command, None, {}, Costs({}, 0.0))  # what is expected is not shown


def cells(found: Outcome | None) -> list[str]:
    """Return the cells of a comparison: both medians, whether it helped, and what was found while the program ran."""
    if found is None:
        return ["", "nothing", "", ""]
    shift = found.saving_interval
    helped = "" if shift is None or not shift.excludes_zero else "faster" if shift.low > 0 else "SLOWER"
    told = {f"{site.remedies[0]}: {site.found.value}" for site in found.sites if site.remedies}
    changed = ["OUTPUT CHANGED"] if found.differences else []
    return [f"{found.bare_s:.3f}", f"{found.corrected_s:.3f}", helped, ", ".join(sorted(told) + changed)]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", dest="kinds", action="append", choices=KINDS, help="default: all")
    parser.add_argument("--runs", type=int, default=7, help="of each version [7]")
    arguments = parser.parse_args()
    table = Table(title="Corrections that are expected to pay, and all that fit: medians, seconds")
    for header in ("kind", "bare", "expected", "", "found", "bare", "all", "", "found"):
        table.add_column(header, overflow="fold")
    with tempfile.TemporaryDirectory() as scratch, watch_others() as others:
        folder = Path(scratch)
        (folder / "vgpu").write_text(CONFIGURATION)
        os.environ["VGPU_CONFIGURATION"] = str(folder / "vgpu")
        program = build_cuda("paying", folder)
        for kind in arguments.kinds or KINDS:
            command = [str(program), kind, str(KINDS[kind])]
            results = measured(command, folder / kind)
            fitting = plan(results.document, list(Correction))
            expected = worthwhile_in(results, fitting, named=True).planned
            both = (compared(results, command, some, arguments.runs) for some in (expected, fitting))
            table.add_row(kind, *(cell for found in both for cell in cells(found)))
            print(kind, file=sys.stderr, flush=True)
    Console(width=180).print(table)
    print(f"{others}; load {os.getloadavg()[0]:.1f}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
