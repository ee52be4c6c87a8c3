"""What sampling the CPU costs a program in stage 2: its processor time with samples by that without, in turns.

    python benchmarks/sampling.py                                  # 9 pairs of runs of each program
    python benchmarks/sampling.py --pairs 5 --program flag

Runs of the samples differ by more than samples cost. `programs/pieces.c` times equal pieces of its own work instead, 4
and 40 functions deep, each long enough for several samples: the ratio is that of their medians. The goal is 2 %
(`docs/architecture.md#instrumenting` says how samples are taken). Prints a line for each program and writes
`benchmarks/results/sampling.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from accuracy import interval_of_median, run_stage
from common.building import build
from common.machine import description, watch_others

from ffm.instrument.modes import Mode
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Tracing
from ffm.results.folder.paths import ResultsFolder
from ffm.stages import tracing
from ffm.stages.measure import Request
from ffm.vgpu.paths import sample

RESULTS = Path(__file__).parent / "results" / "sampling.json"
SAMPLES = {"flag": (), "als": ("40",)}
"""Those that work most on the CPU between their calls, and their arguments."""
PIECES = {"pieces-4": ("75", "4"), "pieces-40": ("75", "40")}
"""Arguments of `programs/pieces.c`."""
LIMIT_S = 120.0
OBSERVED = tracing.OBSERVED


def processor_s(request: Request, sampled: bool, pieces: bool) -> tuple[float, float]:
    """Run stage 2; return processor seconds, of the program or of a usual one of the `pieces` that it times, and those
    that its samples stand for.
    """
    tracing.OBSERVED = OBSERVED if sampled else OBSERVED & ~Mode.SAMPLES
    try:
        run_stage("tracing", request)
    finally:
        tracing.OBSERVED = OBSERVED
    document, _ = read_owned(Tracing, request.folder.document("tracing"))
    assert document.run is not None, "it has just been measured"
    stood_for = sum(document.sampled.nanoseconds) / 1e9
    if pieces:
        return median(map(int, request.folder.output("tracing").read_text().split())) / 1e9, stood_for
    return document.run.user_s + document.run.system_s, stood_for


def measure(name: str, pairs: int, folder: Path) -> dict[str, Any]:
    """Measure a program; return a row of the result."""
    in_pieces = name in PIECES
    command = [build("pieces", folder), *PIECES[name]] if in_pieces else [sample(name), *SAMPLES[name]]
    request = Request([str(word) for word in command], ResultsFolder(folder / "results"), LIMIT_S)
    run_stage("baseline", request)
    each = []
    for _ in range(pairs):
        with_samples, stood_for = processor_s(request, True, in_pieces)
        each.append((with_samples, processor_s(request, False, in_pieces)[0], stood_for))
    ratios = [one / other for one, other, _ in each]
    return {
        "program": name,
        "pairs_s": each,
        "sampled_s": median(stood_for for _, _, stood_for in each),
        "ratio": median(ratios),
        "ratio_interval": interval_of_median(ratios),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=9, help="runs with samples and without, in turn [9]")
    parser.add_argument("--program", action="append", choices=[*PIECES, *SAMPLES], help="only this one")
    arguments = parser.parse_args()
    rows = []
    with watch_others() as others:
        for name in arguments.program or [*PIECES, *SAMPLES]:
            with tempfile.TemporaryDirectory(prefix="ffm-sampling-") as folder:
                rows.append(measure(name, arguments.pairs, Path(folder)))
            low, high = rows[-1]["ratio_interval"]
            sampled = f"samples stand for {rows[-1]['sampled_s']:.2f} s"
            print(f"{name:10} {rows[-1]['ratio']:.3f} ({low:.3f} to {high:.3f})  {sampled}", flush=True)
    print(others, f"Load: {os.getloadavg()[0]:.1f}.")
    RESULTS.write_text(json.dumps({**description(arguments, others), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
