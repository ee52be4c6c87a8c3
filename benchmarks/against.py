"""What an earlier ffm added to driver calls and to the samples, beside this one.

    python benchmarks/against.py CHECKOUT --kinds
    python benchmarks/against.py CHECKOUT --sample als --sample flag --rounds 3

CHECKOUT is a clone of this repository at the earlier commit, set up by `make setup`. Both versions measure the same
programs on this checkout's virtual GPU, in turn: `programs/kinds.c`, as `kinds.py` does, whose figure is the processor
time of the calling thread, the least of all turns; and samples, whose figure is the run's wall time under each stage by
that of the bare run in the same round, the median of the rounds. Prints tables.
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

from common.building import build
from common.machine import undisturbed, watch_others
from common.twins import ARGUMENTS
from kinds import BLOCKS, INSTANT, calls_in

from ffm.vgpu.paths import sample

STAGES = ("baseline", "tracing", "memory", "sync-use")
TURNS = 3


class Version:
    """An installed ffm, with a home of its own, so that none reads what another one cached."""

    def __init__(self, title: str, command: Path, folder: Path) -> None:
        self.title, self._command, self._folder = title, command, folder
        folder.mkdir()

    def run(self, stage: str, program: list[str]) -> float:
        """Run a stage; return the seconds that the program took."""
        results = self._folder / Path(program[0]).name
        subprocess.run(
            [str(self._command), "stage", stage, "--results", str(results), *program],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": str(self._folder), "XDG_CACHE_HOME": str(self._folder)},
        )
        return float(json.loads((results / f"{stage}.json").read_bytes())["run"]["wall_s"])


def measure_kinds(versions: list[Version], folder: Path, rounds: int, calls: int) -> None:
    """Print what stage 2 of each version adds to a call of each kind, in nanoseconds of the processor."""
    program, output = build("kinds", folder), folder / "times"
    program.with_suffix(".vgpu").write_text(INSTANT)
    command = [str(program), str(output), str(calls), str(TURNS), str(BLOCKS)]
    least: dict[str, dict[str, float]] = {}

    def note(way: str) -> None:
        times = least.setdefault(way, {})
        for kind, told in (line.split() for line in output.read_text().splitlines()):
            times[kind] = min(times.get(kind, float("inf")), float(told))
        output.unlink()

    for version in versions:
        version.run("baseline", command)
        output.unlink()
    for _ in range(rounds):
        subprocess.run(command, check=True)
        note("bare")
        for version in versions:
            version.run("tracing", command)
            note(version.title)
    print("| kind | bare | " + " | ".join(f"{version.title} adds" for version in versions) + " |")
    print("| --- " * (len(versions) + 2) + "|")
    for kind, bare in least["bare"].items():
        each = (f"{(least[version.title][kind] - bare) / calls_in(kind):,.0f}" for version in versions)
        print(f"| {kind} | {bare / calls_in(kind):,.0f} | {' | '.join(each)} |")


def measure_sample(versions: list[Version], name: str, rounds: int) -> None:
    """Print the wall time of a sample under each stage of each version, as ratios to the bare program."""
    command = [str(sample(name)), *ARGUMENTS.get(name, [])]
    ratios: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds):
        for stage in STAGES:
            with undisturbed():
                began = time.monotonic()
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
                bare_s = time.monotonic() - began
                for version in versions if number % 2 == 0 else versions[::-1]:
                    ratios.setdefault((version.title, stage), []).append(version.run(stage, command) / bare_s)
    for version in versions:
        cells = (f"{median(ratios[version.title, stage]):.3f}" for stage in STAGES)
        print(f"| {name} | {version.title} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("--sample", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=1000, help="of each kind, in each turn")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ffm-against-") as place, watch_others() as others:
        folder = Path(place)
        earlier = arguments.checkout.resolve() / ".venv" / "bin" / "ffm"
        versions = [Version("earlier", earlier, folder / "earlier")]
        versions.append(Version("this", Path(sys.executable).with_name("ffm"), folder / "this"))
        if arguments.kinds:
            measure_kinds(versions, folder, arguments.rounds, arguments.calls)
        if arguments.sample:
            print("| sample | version | " + " | ".join(STAGES) + " |")
            print("| --- " * (len(STAGES) + 2) + "|")
        for name in arguments.sample:
            measure_sample(versions, name, arguments.rounds)
    print(others)


if __name__ == "__main__":
    main()
