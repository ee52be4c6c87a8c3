"""Do intervals hold on programs that nobody wrote? Random programs: estimated, fixed, and measured again.

    python benchmarks/random_programs.py                       # 40 programs, 7 rounds each
    python benchmarks/random_programs.py --programs 200 --seed 7 --streams 1
    python benchmarks/random_programs.py --sizes               # some kernels fill the GPU, or part of it

Each program repeats a random sequence of uploads, launches on up to three streams, downloads, waits, allocations and
CPU work on the virtual GPU, whose latencies, bandwidths, kernel times and call costs are drawn at random, too: from
half to twice the default. All four stages measure it. The fix leaves out all synchronizations that ffm calls
unnecessary, and each is a call of its own in the source, so that the program does it by an argument. The bare program
and the fixed one then run in turn. The saving is the median of the differences within a round, with a 95 % interval of
that median. An interval *held* if it contains the saving, and *agrees* if it overlaps the saving's own interval: on a
machine in use, small savings are known no better.

Programs without an unnecessary synchronization, and estimates below a share of the run (`--least`), do not count.
Prints a table; writes `benchmarks/results/random_programs.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from accuracy import interval_of_median, run_bare
from common.building import build_file
from common.gpu_defaults import TIMES
from common.machine import description, undisturbed, watch_others
from rich.console import Console
from rich.table import Table

from ffm.errors import FfmError
from ffm.model.timeline import Kind
from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import Results, open_results
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES

RESULTS = Path(__file__).parent / "results" / "random_programs.json"
CONFIGURATION = "VGPU_CONFIGURATION"
LIMIT_S = 60.0

STREAMS = 3
"""As in `programs/random.h`."""

KERNELS = {"kernel.k0": 8.0, "kernel.k1": 60.0, "kernel.k2": 400.0}
"""A short one, a middling one and a long one, us."""

ONE_BLOCK = (1, 32)
SIZES = [ONE_BLOCK, (44, 256), (132, 512), (264, 1024)]
"""Blocks of a kernel, and threads of a block. The virtual GPU's 132 multiprocessors run 2,048 threads each. So some of
these fit beside each other by their blocks, some only by their threads, and the last one fills the GPU.
"""

CALLS = {
    "upload": "cuMemcpyHtoD(device[{b}], pageable[{b}], {size})",
    "upload_pinned": "cuMemcpyHtoDAsync(device[{b}], pinned[{b}], {size}, streams[{s}])",
    "download": "cuMemcpyDtoH(pageable[{b}], device[{b}], {size})",
    "download_pinned": "cuMemcpyDtoHAsync(pinned[{b}], device[{b}], {size}, streams[{s}])",
    "context": "cuCtxSynchronize()",
    "stream": "cuStreamSynchronize(streams[{s}])",
    "event": "cuEventSynchronize(event)",
    "record": "cuEventRecord(event, streams[{s}])",
}
STEPS = [*CALLS, "context", "stream", "launch", "launch", "launch", "work", "work", "look", "allocation"]
"""What a step may be; some several times, because they are more frequent in programs."""


@dataclass(frozen=True, slots=True)
class Program:
    """A generated program: its source, its virtual GPU's configuration, and the line of each call that may go."""

    source: str
    configuration: str
    lines: dict[int, int]
    """By line, the bit of the call in the program's argument."""


def generate(chance: random.Random, streams: int = STREAMS, sizes: random.Random | None = None) -> Program:
    """Return a program with at least one wait, a GPU of its own, and at most `streams` streams.

    `sizes` draws how large kernels are; if it is not given, each has one block.
    """
    some = [ONE_BLOCK] if sizes is None else sizes.sample(SIZES, sizes.randint(1, len(SIZES)))
    size = random.Random(0) if sizes is None else sizes
    steps = [chance.choice(STEPS) for _ in range(chance.randint(5, 14))] + [
        "launch",
        chance.choice(["context", "stream"]),
    ]
    chance.shuffle(steps)
    repeated = chance.choice([100, 200, 400])
    source = [
        '#include "random.h"',
        "int main(int count, char **arguments)",
        "{",
        "    begin(count, arguments);",
        f"    for (int round = 0; round < {repeated}; round++) {{",
    ]
    lines: dict[int, int] = {}
    for number, step in enumerate(steps):
        values = {
            "b": chance.randrange(4),
            "s": chance.randrange(streams),
            "size": chance.choice([4, 4096, 1 << 16, 1 << 18]),
        }
        if step in ("context", "stream", "event"):
            lines[len(source) + 1] = number
            source.append(f"UNLESS_LEFT_OUT({number}, {CALLS[step].format(**values)});")
        elif step in CALLS:
            source.append(f"CHECK({CALLS[step].format(**values)});")
        elif step == "launch":
            blocks, threads = size.choice(some)
            source.append(f"launch({chance.randrange(3)}, {values['s']}, {blocks}, {threads});")
        elif step == "work":
            source.append(f"work({chance.choice([1_000, 10_000, 100_000])});")
        elif step == "look":
            source.append(f"look_at(pageable[{values['b']}]);")
        else:
            source.append(f"CUdeviceptr block{number};")
            source.append(f"CHECK(cuMemAlloc(&block{number}, {values['size']}));")
            source.append(f"CHECK(cuMemFree(block{number}));")
    source += ["    }", "    CHECK(cuCtxSynchronize());", '    printf("%ld\\n", sum);', "}"]
    drawn = {name: value * 2 ** chance.uniform(-1, 1) for name, value in {**KERNELS, **TIMES}.items()}
    configuration = [f"{name} = {value:.4g}" for name, value in drawn.items()]
    return Program("\n".join(source) + "\n", "\n".join([*configuration, "device.code = pass"]) + "\n", lines)


def spare_sites(results: Results, program: Program) -> dict[int, int]:
    """Return the sites of the unnecessary explicit synchronizations of the loop, with their bits."""
    timeline, document = results.timeline, results.document
    found: dict[int, int] = {}
    for site in np.unique(
        timeline.site[(timeline.problem & 1 != 0) & (timeline.kind == Kind.SYNCHRONIZATION)]
    ).tolist():
        frames = document.stacks[document.sites[site].stack].frames
        for frame in frames:
            if frame.line in program.lines and Path(frame.file).name == "program.c":
                found[site] = program.lines[frame.line]
                break
    return found


def try_program(
    seed: int, streams: int, rounds: int, least: float, folder: Path, *, sizes: bool = False
) -> dict[str, Any] | None:
    """Measure a program, fix it, and measure again; None if there is nothing to fix."""
    program = generate(random.Random(seed), streams, random.Random(seed) if sizes else None)
    (folder / "program.c").write_text(program.source)
    (folder / "vgpu").write_text(program.configuration)
    os.environ[CONFIGURATION] = str(folder / "vgpu")
    executable = str(build_file(folder / "program.c", folder))
    request = Request([executable, "0"], ResultsFolder(folder / "results"), LIMIT_S)
    for stage in MEASURING_STAGES.values():
        with undisturbed():
            stage(request)
    run_analysis(request.folder)
    results = open_results(request.folder.root)
    sites = spare_sites(results, program)
    if not sites:
        return None
    benefit = results.estimates.of_sites([list(sites)])[0]
    likely = benefit.replay_s if benefit.replay_s is not None else benefit.carry_s
    low, high = benefit.low_s or 0.0, benefit.high_s or likely
    if likely < least * results.document.wall_s:
        return None
    mask = sum(1 << bit for bit in set(sites.values()))
    pairs = []
    for _ in range(rounds):
        before = run_bare([executable, "0"])
        pairs.append(before - run_bare([executable, f"{mask:x}"]))
    saved, around = median(pairs), interval_of_median(pairs)
    return {
        "seed": seed,
        "run_s": results.document.wall_s,
        "calls": sorted(set(sites.values())),
        "estimate_s": likely,
        "interval_s": [low, high],
        "measured_s": saved,
        "measured_interval_s": around,
        "held": low <= saved <= high,
        "agrees": low <= around[1] and around[0] <= high,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table(title="Random programs: estimate and measured saving, milliseconds")
    for header in ("seed", "run", "measured", "of 95 %", "estimate", "from", "to", "held", "agrees"):
        table.add_column(header, justify="right")
    for row in rows:
        numbers = [row["run_s"], row["measured_s"], *row["measured_interval_s"], row["estimate_s"], *row["interval_s"]]
        run, saved, low, high, likely, least, most = (f"{1000 * number:.1f}" for number in numbers)
        marks = ("yes" if row[key] else "NO" for key in ("held", "agrees"))
        table.add_row(str(row["seed"]), run, saved, f"{low} to {high}", likely, least, most, *marks)
    Console(width=120).print(table)


def main() -> int:
    """Try programs until enough have something to fix; print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=40, help="how many with something to fix [40]")
    parser.add_argument(
        "--streams", type=int, default=STREAMS, help=f"at most so many, the default one first [{STREAMS}]"
    )
    parser.add_argument("--rounds", type=int, default=7, help="runs of each program, bare and fixed in turn [7]")
    parser.add_argument("--seed", type=int, default=1, help="of the first program; the next ones follow [1]")
    parser.add_argument("--least", type=float, default=0.01, help="smallest estimate as a share of the run [0.01]")
    parser.add_argument("--sizes", action="store_true", help="kernels of several sizes instead of one block each")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after this time")
    arguments = parser.parse_args()
    until = time.monotonic() + 60 * arguments.minutes
    rows: list[dict[str, Any]] = []
    failed: list[int] = []
    seed = arguments.seed
    with watch_others() as others:
        while len(rows) < arguments.programs and time.monotonic() < until:
            with tempfile.TemporaryDirectory(prefix="ffm-random-") as folder:
                try:
                    row = try_program(
                        seed,
                        arguments.streams,
                        arguments.rounds,
                        arguments.least,
                        Path(folder),
                        sizes=arguments.sizes,
                    )
                except (FfmError, subprocess.SubprocessError) as error:
                    print(f"program {seed}: {error}", file=sys.stderr)
                    failed.append(seed)
                    row = None
            if row is not None:
                rows.append(row)
                low, high = row["interval_s"]
                print(
                    f"program {seed}: {row['estimate_s']:.4f} [{low:.4f}, {high:.4f}] s of {row['run_s']:.3f} s, "
                    f"measured {row['measured_s']:.4f} s",
                    file=sys.stderr,
                )
            seed += 1
    show(rows)
    held, agree = (sum(row[key] for row in rows) for key in ("held", "agrees"))
    print(
        f"{held} of {len(rows)} intervals held the measured saving; {agree} agree with the interval of the measurement."
    )
    print(f"load {os.getloadavg()[0]:.1f}; {others}")
    if failed:
        print(f"not measured: {', '.join(map(str, failed))}", file=sys.stderr)
    RESULTS.parent.mkdir(exist_ok=True)
    head = {**description(arguments, others), "load": os.getloadavg()[0], "tried": seed - arguments.seed}
    RESULTS.write_text(
        json.dumps({**head, "held": held, "agree": agree, "failed": failed, "rows": rows}, indent=2) + "\n"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
