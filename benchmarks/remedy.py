"""What a corrected call costs: matching its stack against the plan, and the pool compared with the driver's own.

    python benchmarks/remedy.py
    python benchmarks/remedy.py --rounds 9

`programs/remedied.c` repeats the same calls from a depth of 16 frames, and times itself:

- `cuMemFree(0)`, the cheapest call that can be planned: bare; under the correcting library with other functions
  planned, so that nothing is looked up; and with its own stack planned. The last two differ by the lookup: unwinding,
  hashing, and finding the site;
- `cuMemAlloc` and `cuMemFree` of 256 KiB, bare and pooled, compared with `cuMemAllocAsync` and `cuMemFreeAsync`;
- `cuCtxSynchronize` of an idle GPU, bare and skipped, which leaves an order on the device instead.

A program that makes a single such call, bare and with it planned, shows what being corrected costs a program at all.

They run in turn, in several rounds; the result is the median over the rounds of the fastest batch. The calls that the
library itself makes last as long as configured for the virtual GPU, which resembles an H200 (ffm/vgpu/README.md): a
pooled free records one event, 0.6 microseconds. Prints a table; writes `benchmarks/results/remedy.json`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from common.building import build
from common.machine import description, watch_others

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Kind
from ffm.instrument.recording.reader import read_recordings
from ffm.instrument.session.instruments import Instruments
from ffm.instrument.session.runner import run_instrumented
from ffm.remedy.correct import LIBRARY
from ffm.remedy.layout import constant, read_counters
from ffm.remedy.plan_file import Planned, write_plan

RESULTS = Path(__file__).parent / "results" / "remedy.json"
GOAL_NS = 200
"""Goal for matching a call's stack against the plan, for known sites."""
FRAMES = 16
CALLS, BATCHES = 2000, 30

FUNCTIONS = [function.name for function in load_catalogue().of_kind(*(frozenset(Kind) - {Kind.ENTRY}))]
ACTIONS = {"cuMemAlloc_v2": "POOL_ALLOCATION", "cuMemFree_v2": "POOL_FREE", "cuCtxSynchronize": "SKIP"}


class NoWaitFunction:
    """None is needed."""

    offsets: tuple[int, ...] = ()


@dataclass(frozen=True)
class Way:
    """A row of the table: what the program does (its argument WAY), and how it is run."""

    title: str
    work: str
    planned: str
    """`no`: the bare program; `others`: under the library, its calls not planned; `yes`: planned."""


WAYS = (
    Way("cuMemFree(0), as it is", "nothing", "no"),
    Way("cuMemFree(0), hooked", "nothing", "others"),
    Way("cuMemFree(0), hooked and looked up", "nothing", "yes"),
    Way("cuMemAlloc + cuMemFree, as they are", "plain", "no"),
    Way("cuMemAlloc + cuMemFree, pooled", "plain", "yes"),
    Way("cuMemAllocAsync + cuMemFreeAsync", "ordered", "no"),
    Way("cuCtxSynchronize, as it is", "skip", "no"),
    Way("cuCtxSynchronize, skipped", "skip", "yes"),
)


def run_under(command: list[str], folder: Path, instruments: Instruments) -> float:
    """Run the program with instruments; it must end without error. Returns its seconds."""
    outcome = run_instrumented(command, instruments, output=folder / "log")
    if not outcome.ending.sound:
        raise RuntimeError(f"The program {outcome.ending}: {(folder / 'log').read_text()}")
    return outcome.wall_s


def plan_of(program: Path, work: str, folder: Path) -> list[Planned]:
    """Trace a few calls, and plan their corrections."""
    with tempfile.TemporaryDirectory(dir=folder) as recordings:
        command = [str(program), str(folder / "times"), "2", "1", work]
        instruments = Instruments(Path(recordings), FUNCTIONS, 0, None, lambda driver: NoWaitFunction())
        run_under(command, folder, instruments)
        (recording,) = read_recordings(Path(recordings))
    catalogue = load_catalogue()
    calls = set(zip(recording.operations["stack"].tolist(), recording.operations["function"].tolist(), strict=True))
    planned = [
        Planned(
            site=0,
            key=bytes.fromhex(recording.stacks[stack].key),
            function=function,
            actions=constant(f"FFM_REMEDY_{ACTIONS[catalogue[function].name]}"),
            corrections=(),
        )
        for stack, function in calls
        if catalogue[function].name in ACTIONS
    ]
    depths = {len(recording.stacks[stack].frames) for stack, function in calls if catalogue[function].name in ACTIONS}
    if depths != {FRAMES}:
        raise RuntimeError(f"The calls have stacks of {depths} frames, not {FRAMES}.")
    return planned


def entering(program: Path, planned: list[Planned], folder: Path) -> float:
    """Return the seconds that the program takes longer because it is corrected, if it makes one call."""
    command = [str(program), str(folder / "times"), "1", "1", "nothing"]
    began = time.monotonic()
    subprocess.run(command, check=True)
    bare_s = time.monotonic() - began
    return corrected(command, planned, folder)[0] - bare_s


def corrected(command: list[str], planned: list[Planned], folder: Path) -> tuple[float, int]:
    """Run the program with planned corrections; return its seconds, and how many of its calls were matched."""
    write_plan(planned, folder / "plan")
    with tempfile.TemporaryDirectory(dir=folder) as counts:
        find: Callable[[Path], NoWaitFunction] = lambda driver: NoWaitFunction()  # noqa: E731
        extra = tuple(load_catalogue().extra.values())
        instruments = Instruments(Path(counts), FUNCTIONS, 0, folder / "plan", find, LIBRARY, extra)
        wall_s = run_under(command, folder, instruments)
        (path,) = Path(counts).glob("remedy-*.ffm")
        return wall_s, sum(tally.calls for tally in read_counters(path).tallies)


def fastest(program: Path, way: Way, plans: dict[str, list[Planned]], folder: Path) -> float:
    """Run the program once; return the nanoseconds per call in the fastest batch."""
    output = folder / "times"
    command = [str(program), str(output), str(CALLS), str(BATCHES), way.work]
    if way.planned == "no":
        subprocess.run(command, check=True)
    else:
        other = load_catalogue()["cuMemAllocHost_v2"].index  # never called
        planned = plans[way.work]
        if way.planned == "others":
            planned = [dataclasses.replace(site, function=other) for site in planned]
        _, calls = corrected(command, planned, folder)
        if (calls >= CALLS * BATCHES) != (way.planned == "yes"):
            raise RuntimeError(f"{way.title}: {calls} calls were matched.")
    return min(float(line) for line in output.read_text().split())


def main() -> int:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    times: dict[str, list[float]] = {way.title: [] for way in WAYS}
    entered_s: list[float] = []
    with tempfile.TemporaryDirectory(prefix="ffm-remedy-") as scratch, watch_others() as others:
        folder = Path(scratch)
        program = build("remedied", folder)
        plans = {work: plan_of(program, work, folder) for work in ("nothing", "plain", "skip")}
        for _ in range(arguments.rounds):
            entered_s.append(entering(program, plans["nothing"], folder))
            for way in WAYS:
                times[way.title].append(fastest(program, way, plans, folder))
    for title, seen in times.items():
        print(f"{median(seen):10.0f} ns  {title}")
    lookups = [
        planned - hooked
        for planned, hooked in zip(
            times["cuMemFree(0), hooked and looked up"], times["cuMemFree(0), hooked"], strict=True
        )
    ]
    lookup = median(lookups)
    verdict = "reached" if lookup <= GOAL_NS else "missed"
    print(f"{lookup:10.0f} ns  lookup at a known site, {FRAMES} frames deep; goal {GOAL_NS}: {verdict}")
    print(f"{1e3 * median(entered_s):10.1f} ms  for being corrected at all")
    print(others)
    RESULTS.parent.mkdir(exist_ok=True)
    content = {
        **description(arguments, others),
        "nanoseconds": times,
        "entering_s": entered_s,
        "lookup_ns": lookups,
        "lookup_median_ns": lookup,
        "goal_ns": GOAL_NS,
    }
    RESULTS.write_text(json.dumps(content, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
