"""Does an estimate hold what a change by hand saves? For a program that was measured, and a changed copy of it.

    ffm run --results results ./app 3 10
    python benchmarks/by_hand.py results --at main.cu:120 -- ./changed 3 10

Runs the measured program bare and the changed one in turn. Prints what the change saved, as the difference of their
medians with an interval, beside what doing without the calls at the given lines was estimated to save. The programs run
at real-time priority where that is permitted (root), as those that were measured must where others use the machine.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from pathlib import Path
from statistics import median

from machine import undisturbed, watch_others

from ffm.remedy.shift import shift_between
from ffm.results.documents.site import Site
from ffm.results.stored import benefit_of_correcting, open_results


def seconds_of(command: list[str]) -> float:
    """Run a program bare; return the seconds from before its start to its end.

    Raises:
        subprocess.CalledProcessError: It failed.
    """
    began = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def is_at(site: Site, places: list[str]) -> bool:
    """Return whether a call site has a problem and is at one of the lines, each `file:line`."""
    return site.problem_count > 0 and f"{Path(site.file).name}:{site.line}" in places


def main() -> int:
    """Run both in turn, and print; 1 if no site with a problem is at the lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="folder with the results of the program before the change")
    parser.add_argument("--at", action="append", required=True, metavar="FILE:LINE", help="calls that are left out")
    parser.add_argument("--pairs", type=int, default=9, help="runs of each program, in turn [9]")
    parser.add_argument("changed", nargs="+", help="the changed program and its arguments, after --")
    arguments = parser.parse_args()
    results = open_results(arguments.results)
    sites = [number for number, site in enumerate(results.document.sites) if is_at(site, arguments.at)]
    if not sites:
        print(f"no site with a problem is at {', '.join(arguments.at)}: `ffm report` lists them")
        return 1
    benefit = benefit_of_correcting(results, sites)
    before, after = [], []
    with undisturbed(), watch_others() as others:
        for _ in range(arguments.pairs):
            before.append(seconds_of(list(results.document.command)))
            after.append(seconds_of(arguments.changed))
    shift = shift_between(before, after)
    between = f" ({shift.low:.3f} to {shift.high:.3f}, {shift.confidence:.0%} sure)" if shift is not None else ""
    print(f"run       {median(before):.3f} s")
    print(f"estimate  {benefit.expected_s:.3f} s ({benefit.low_s or 0:.3f} to {benefit.high_s or 0:.3f})")
    print(f"saved     {median(before) - median(after):.3f} s{between}")
    print(others)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
