"""Does an estimate hold what a change by hand saves? For a program that was measured, and a changed copy of it.

    ffm run --results results ./app 3 10
    python benchmarks/by_hand.py results --at main.cu:120 -- ./changed 3 10

    ffm run --results results python script.py
    python benchmarks/by_hand.py results --at script.py:12 --leave-out

Runs the measured program bare and the changed one in turn; with `--leave-out`, that is a copy of the Python script in
which `pass` stands at the given lines. Prints what the change saved, as the difference of their medians with an
interval, beside what doing without the calls at the given lines was estimated to save, and whether both print the same.
The programs run at real-time priority where that is permitted (root), as those that were measured must where others use
the machine.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from common.machine import undisturbed, watch_others

from ffm.remedy.shift import shift_between
from ffm.results.documents.site import Site
from ffm.results.stored import benefit_of_correcting, open_results


@dataclass(frozen=True, slots=True)
class Run:
    """One of a program, bare."""

    seconds: float
    """From before its start to its end."""
    printed: bytes


def run_of(command: list[str]) -> Run:
    """Run a program.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Run(time.monotonic() - began, done.stdout)


def without(command: list[str], places: list[str], folder: Path) -> list[str]:
    """Return the command of a Python script with a copy of it in which `pass` stands at lines, each `file:line`."""
    number = next(number for number, part in enumerate(command) if part.endswith(".py"))
    script = Path(command[number])
    lines = script.read_text().splitlines(keepends=True)
    for place in places:
        name, _, line = place.rpartition(":")
        if name == script.name:
            old = lines[int(line) - 1]
            lines[int(line) - 1] = old[: len(old) - len(old.lstrip())] + "pass\n"
    copy = folder / script.name
    copy.write_text("".join(lines))
    return [*command[:number], str(copy), *command[number + 1 :]]


def is_at(site: Site, places: list[str]) -> bool:
    """Return whether a call site has a problem and is at one of the lines, each `file:line`."""
    return site.problem_count > 0 and f"{Path(site.file).name}:{site.line}" in places


def main() -> int:
    """Run both in turn, and print; 1 if no site with a problem is at the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="folder with the results of the program before the change")
    parser.add_argument("--at", action="append", required=True, metavar="FILE:LINE", help="calls that are left out")
    parser.add_argument("--pairs", type=int, default=9, help="runs of each program, in turn [9]")
    how = parser.add_mutually_exclusive_group(required=True)
    how.add_argument("--leave-out", action="store_true", help="make the changed copy of a Python script")
    how.add_argument("changed", nargs="*", default=[], help="the changed program and its arguments, after --")
    arguments = parser.parse_args()
    results = open_results(arguments.results)
    sites = [number for number, site in enumerate(results.document.sites) if is_at(site, arguments.at)]
    if not sites:
        print(f"no site with a problem is at {', '.join(arguments.at)}: `ffm report` lists them")
        return 1
    benefit = benefit_of_correcting(results, sites)
    before: list[Run] = []
    after: list[Run] = []
    with TemporaryDirectory() as folder, undisturbed(), watch_others() as others:
        command = list(results.document.command)
        changed = without(command, arguments.at, Path(folder)) if arguments.leave_out else arguments.changed
        for _ in range(arguments.pairs):
            before.append(run_of(command))
            after.append(run_of(changed))
    old, new = [run.seconds for run in before], [run.seconds for run in after]
    shift = shift_between(old, new)
    between = f" ({shift.low:.3f} to {shift.high:.3f}, {shift.confidence:.0%} sure)" if shift is not None else ""
    print(f"run       {median(old):.3f} s")
    print(f"estimate  {benefit.expected_s:.3f} s ({benefit.low_s or 0:.3f} to {benefit.high_s or 0:.3f})")
    print(f"saved     {median(old) - median(new):.3f} s{between}")
    print(f"printed   {'the same' if len({run.printed for run in (*before, *after)}) == 1 else 'something else'}")
    print(others)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
