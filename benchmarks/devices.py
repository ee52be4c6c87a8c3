"""Are estimates right with several devices? Small programs on two and on four, with a problem and without it.

    python benchmarks/devices.py                                   # all kinds, 2 and 4 devices, 9 rounds
    python benchmarks/devices.py --kind wait --devices 4 --rounds 15

`programs/devices.cu` gives each device a kernel in every turn, and then fetches a number from each. In `wait` the CPU
waits for each device before it turns to the next, in `free` it frees memory of it, which waits too, and in `upload` it
sends each device the same bytes in every turn. The stages run once for each kind and number of devices; the estimate is
that for all problems that they find. Then the program runs in turn as it is and without the problem. The saving is the
median of the differences, with its 95 % interval. Prints a table, and whether each estimate's interval holds the
saving; writes `benchmarks/results/devices.json`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from accuracy import interval_of_median, run_bare, run_stage
from common.building import build_cuda
from common.machine import description, watch_others
from common.twins import write_rows
from rich.console import Console
from rich.table import Table

from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import open_results
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request

RESULTS = Path(__file__).parent / "results" / "devices.json"
TURNS = {"wait": 400, "free": 400, "upload": 400}
"""Of each kind, divided by the number of devices."""
KERNEL_US = 400


def measure(program: Path, kind: str, devices: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Measure a kind of problem on a number of devices; return the row of the result."""
    command = [str(program), kind, str(devices), str(TURNS[kind] // devices)]
    gpu = f"devices = {devices}\nkernel.step = {KERNEL_US}\n"
    return measure_pair(f"{kind} on {devices}", command, gpu, rounds, folder / f"{kind}{devices}")


def measure_pair(name: str, command: list[str], gpu: str, rounds: int, folder: Path) -> dict[str, Any]:
    """Measure a program, and what adding `fixed` to its arguments saves; return the row of the result.

    `gpu` is the configuration of the virtual GPU.
    """
    folder.mkdir()
    (folder / "vgpu").write_text(gpu)
    os.environ["VGPU_CONFIGURATION"] = str(folder / "vgpu")
    request = Request(command, ResultsFolder(folder / "results"), 300.0)
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        run_stage(stage, request)
    run_analysis(request.folder)
    everything = open_results(request.folder.root).document.everything
    assert everything is not None
    bare, fixed = [], []
    for _ in range(rounds):
        bare.append(run_bare(command))
        fixed.append(run_bare([*command, "fixed"]))
    pairs = [before - after for before, after in zip(bare, fixed, strict=True)]
    low, high = everything.low_s or 0.0, everything.high_s or 0.0
    around = interval_of_median(pairs)
    return {
        "twin": name,
        "estimate_s": everything.replay_s,
        "interval_s": [low, high],
        "measured_s": median(pairs),
        "measured_interval_s": around,
        "holds": low <= median(pairs) <= high,
        "agrees": low <= around[1] and around[0] <= high,
        "bare_s": bare,
        "fixed_s": fixed,
    }


def show(rows: list[dict[str, Any]], of: str) -> None:
    """Print the table; `of` says what the programs have several of. An interval holds the saving if that lies in it,
    and agrees if it overlaps the saving's own one: of programs whose runs differ much, the saving is known no better.
    """
    table = Table(title=f"Estimate and measured saving with several {of}, seconds")
    for header in ("program", "bare", "saved", "of 95 %", "estimate", "from", "to", "holds", "agrees"):
        table.add_column(header, justify="left" if header == "program" else "right")
    for row in rows:
        cells = (median(row["bare_s"]), row["measured_s"])
        told = [f"{cell:.3f}" for cell in cells] + ["-".join(f"{bound:.3f}" for bound in row["measured_interval_s"])]
        estimated = [f"{cell:.3f}" for cell in (row["estimate_s"] or 0.0, *row["interval_s"])]
        table.add_row(row["twin"], *told, *estimated, *("yes" if row[key] else "NO" for key in ("holds", "agrees")))
    Console(width=120).print(table)


def summary(rows: list[dict[str, Any]]) -> str:
    """Return how many intervals hold the saving, and how many agree with it."""
    held, agree = (sum(row[key] for row in rows) for key in ("holds", "agrees"))
    return f"{held} of {len(rows)} intervals hold the measured saving, and {agree} agree with its interval."


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", dest="kinds", action="append", choices=TURNS, help="default: all")
    parser.add_argument("--devices", action="append", type=int, choices=range(1, 17), help="default: 2 and 4")
    parser.add_argument("--rounds", type=int, default=9, help="runs of each version [9]")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch, watch_others() as others:
        program = build_cuda("devices", Path(scratch))
        for kind in arguments.kinds or TURNS:
            for devices in arguments.devices or (2, 4):
                rows.append(measure(program, kind, devices, arguments.rounds, Path(scratch)))
                print(f"{kind}, {devices} devices", file=sys.stderr, flush=True)
    show(rows, "devices")
    print(f"{summary(rows)} {others}")
    write_rows(RESULTS, description(arguments, others), rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
