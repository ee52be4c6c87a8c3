"""Compare the GPU times that ffm infers from waits alone with those that a profiler measured on a real GPU.

    python benchmarks/real_gpus.py REPORT.sqlite [REPORT.sqlite ...] [--latency NANOSECONDS]

Each report is one of Nsight Systems, exported as SQLite. Its GPU times are hidden from `ffm.model.gpu_times`, which
infers them from the calls. The table shows the error of the sum over all operations, for the likely timeline and for
those that limit the interval. `encloses` says whether the measured sum lies within the interval. `saves` is what doing
without all waits would save at most, with the measured times and with the inferred ones, as a share of the run.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ffm.model.device import Action
from ffm.model.gpu_times import infer_gpu_times
from ffm.model.replay import Replay
from ffm.sources.nsight import read_nsight
from ffm.sources.profiled import profiled_run

WAITS = (Action.ENQUEUE_AND_WAIT, Action.WAIT_AND_ENQUEUE, Action.WAIT_CONTEXT, Action.WAIT_STREAM, Action.WAIT_EVENT)


@dataclass(frozen=True, slots=True)
class Row:
    """What one report shows. Errors are shares of the measured sum."""

    name: str
    operations: int
    mean_us: float
    likely: float
    slow: float
    fast: float
    saves_measured: float
    saves_inferred: float

    def __str__(self) -> str:
        encloses = "yes" if self.fast <= 0 <= self.slow else "no"
        return (
            f"{self.name:34} {self.operations:7,} {self.mean_us:9.2f} {self.likely:+8.1%} {self.fast:+8.1%} "
            f"{self.slow:+8.1%} {encloses:>8} {self.saves_measured:8.2%} {self.saves_inferred:8.2%}"
        )


def compare(report: Path, latency_ns: int) -> Row:
    """Infer the GPU times of one report's run, and compare them with the measured ones."""
    profile = read_nsight(report)
    run = profiled_run(profile, profile.calls.name.astype(np.int32))
    measured = run.work.measured.clip(0)
    hidden = replace(run.work, measured=np.full(len(run.timeline), -1, np.int64))
    exact = infer_gpu_times(run.timeline, run.work, latency_ns)
    inferred = infer_gpu_times(run.timeline, hidden, latency_ns)
    total = int(measured.sum())
    waits = np.isin(run.work.action, WAITS)
    length = int((run.timeline.start + run.timeline.duration + run.timeline.gap).max())
    saves = [
        Replay(run.timeline, work, times).without(waits).likely_s * 1e9 / length
        for work, times in ((run.work, exact), (hidden, inferred))
    ]
    errors = [int(times.gpu.sum()) / total - 1 for times in (inferred.likely, inferred.slow, inferred.fast)]
    operations = int((measured > 0).sum())
    return Row(report.stem, operations, total / operations / 1e3, *errors, *saves)


def main() -> None:
    """Compare what the command line names, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reports", type=Path, nargs="+", metavar="REPORT")
    parser.add_argument(
        "--latency", type=int, default=3_000, help="least nanoseconds of a launch and a wait beyond the work (3000)"
    )
    arguments = parser.parse_args()
    print(f"a launch and a wait take at least {arguments.latency:,} ns beyond the work")
    print(
        f"{'report':34} {'GPU ops':>7} {'mean us':>9} {'likely':>8} {'fast':>8} {'slow':>8} {'encloses':>8} "
        f"{'saves':>8} {'inferred':>8}"
    )
    for report in arguments.reports:
        print(compare(report, arguments.latency))


if __name__ == "__main__":
    main()
