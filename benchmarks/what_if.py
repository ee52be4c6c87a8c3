"""Is `ffm path --if` right? Programs that are really changed, measured before and after.

    python benchmarks/what_if.py                                   # all changes, 7 pairs of runs each
    python benchmarks/what_if.py --pairs 3 --program flag          # those of one program
    python benchmarks/what_if.py --program random --random 20      # those of 20 random programs

`ffm path --if` replays the program as it was measured. The changed program then runs in turn with the unchanged one,
and the saving is the median of the differences within a pair. `common/changed_programs.py` lists the changes: kernels
and work of the CPU that are twice as fast, and copies that are gone, of the samples, of a program in `programs/`, and
of some that `random_programs.py` writes.

An answer is right if the ratio of the seconds that `--if` says to those measured is within 0.95 to 1.05, or if its
interval holds the latter. Prints a table; writes `benchmarks/results/what_if.json`. Returns 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from accuracy import interval_of_median, run_stage
from common.changed_programs import CHANGES, Built, Change, build_changed, doubled, random_changes
from common.machine import description, undisturbed, watch_others
from common.perturbing import on_gpu
from rich.console import Console
from rich.table import Table

from ffm.errors import FfmError
from ffm.report.waiting.changes import change_view
from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import open_results
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES

RESULTS = Path(__file__).parent / "results" / "what_if.json"
GOAL = (0.95, 1.05)
LIMIT_S = 300.0

WRONG_RESULT = 1
"""What a sample returns that lacks a copy, or does some work twice. Only its times count here."""


def status_of(program: Built, folder: Path) -> int:
    """Return the exit status of a program."""
    with on_gpu(program.gpu, folder):
        return subprocess.run(program.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def seconds_of(program: Built, folder: Path) -> float:
    """Run a program bare; return the seconds from before its start to its end."""
    with on_gpu(program.gpu, folder), undisturbed():
        began = time.monotonic()
        ran = subprocess.run(program.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        ended = time.monotonic()
    if ran.returncode not in (0, WRONG_RESULT):
        raise FfmError(f"{program.command[0]} ended with {ran.returncode}")
    return ended - began


def measure(change: Change, pairs: int, folder: Path) -> dict[str, Any]:
    """Ask `ffm path --if` about a change, and measure it; return a row of the result."""
    before = build_changed(change, change.before, folder / "before")
    after = build_changed(change, change.after, folder / "after")
    before = Built(before.command, doubled(before.gpu, change.kernels))
    request = Request(
        before.command, ResultsFolder(folder / "results"), LIMIT_S, accepted_status=status_of(before, folder)
    )
    with on_gpu(before.gpu, folder):
        for stage in MEASURING_STAGES:
            run_stage(stage, request)
    run_analysis(request.folder)
    answer = change_view(open_results(request.folder.root), [change.question])
    each = [(seconds_of(before, folder), seconds_of(after, folder)) for _ in range(pairs)]
    saved = [one - other for one, other in each]
    measured, gain = median(saved), answer.gain
    return {
        "program": change.program,
        "change": change.name,
        "asked": change.question,
        "run_s": median(one for one, _ in each),
        "said_s": gain.seconds,
        "interval_s": [gain.low_s, gain.high_s],
        "measured_s": measured,
        "measured_interval_s": interval_of_median(saved),
        "ratio": gain.seconds / measured if measured > 0 else None,
        "holds": gain.low_s <= measured <= gain.high_s,
        "pairs_s": each,
    }


def is_right(row: dict[str, Any]) -> bool:
    """Whether an answer is as good as it is meant to be."""
    return row["holds"] or (row["ratio"] is not None and GOAL[0] <= row["ratio"] <= GOAL[1])


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table(title="What `ffm path --if` says, and what the change saved, seconds")
    for header in ("program", "change"):
        table.add_column(header)
    for header in ("run", "said", "from", "to", "measured", "of 95 %", "ratio", "holds", "right"):
        table.add_column(header, justify="right")
    for row in rows:
        numbers = (row["run_s"], row["said_s"], *row["interval_s"], row["measured_s"])
        around = " to ".join(f"{one:.3f}" for one in row["measured_interval_s"])
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
        marks = ("yes" if good else "NO" for good in (row["holds"], is_right(row)))
        table.add_row(row["program"], row["change"], *(f"{one:.3f}" for one in numbers), around, ratio, *marks)
    Console(width=150).print(table)


def main() -> int:
    """Measure, print and write; return 1 if an answer is wrong or missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=7, help="runs of the program and the changed one, in turn [7]")
    parser.add_argument("--program", action="append", help="only changes of this program, or of `random` ones")
    parser.add_argument("--random", type=int, default=4, help="how many random programs [4]")
    parser.add_argument("--seed", type=int, default=1, help="of the first of them [1]")
    arguments = parser.parse_args()
    changes = [
        *CHANGES,
        *(one for number in range(arguments.random) for one in random_changes(arguments.seed + number)),
    ]
    wanted = arguments.program or sorted({change.program for change in changes})
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    with watch_others() as others:
        for change in changes:
            if change.program not in wanted and change.program.partition("-")[0] not in wanted:
                continue
            with tempfile.TemporaryDirectory(prefix="ffm-what-if-") as folder:
                try:
                    rows.append(measure(change, arguments.pairs, Path(folder)))
                except (FfmError, subprocess.CalledProcessError) as error:
                    print(f"{change.program}, {change.name}: {error}", file=sys.stderr)
                    failed.append(f"{change.program}, {change.name}")
                    continue
            show(rows[-1:])
    show(rows)
    right = sum(map(is_right, rows))
    print(f"{right} of {len(rows)} answers are right.")
    print(f"load {os.getloadavg()[0]:.1f}; {others}")
    if failed:
        print(f"not measured: {'; '.join(failed)}", file=sys.stderr)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({**description(arguments, others), "right": right, "rows": rows}, indent=2) + "\n")
    return 0 if right == len(rows) and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
