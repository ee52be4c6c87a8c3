"""Compare the GPU times that ffm infers from waits alone with those that a profiler measured on a real GPU.

    python benchmarks/real_gpus.py TRACE [TRACE ...] [--latency NANOSECONDS]

Each trace is a report of Nsight Systems, exported as SQLite, or one of PyTorch's profiler (JSON). Its GPU times are
hidden from `ffm.model.gpu_times`, which infers them from the calls. As in a measurement, a launch is told by its
kernel. If the GPU worked at the start of the trace for calls before it, calls count from when that work was waited for,
and earlier ones are left out: what they seem to take is partly that work.

The table shows the error of the sum over all operations, for the likely timeline and for those that limit the interval;
`any` means that nothing waits for some of the work, so that it may have taken any time. `encloses` says whether the
measured sum lies within the interval; `guessed` is the number of operations of which no wait shows how long they take.
`told` is the share of the GPU's time that all others took, and `its error` that of their sum in the likely timeline.
`saves` is what doing without all explicit synchronizations would save at most, with the measured times and with the
inferred ones, as a share of the run.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.estimators.replay import Replay
from ffm.model.gpu_times.expected_work import SMALL_TRANSFER_NS, expect_times, find_equal_work
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.segment_lengths import find_segment_lengths
from ffm.model.gpu_times.timelines import ENDLESS_NS
from ffm.model.timeline import Kind, Timeline
from ffm.sources.nsight import read_nsight
from ffm.sources.profile import Profile
from ffm.sources.profiled import ProfiledRun, profiled_run
from ffm.sources.profiled_results import findings
from ffm.sources.pytorch import read_pytorch


@dataclass(frozen=True, slots=True)
class Row:
    """What one report shows. Errors are shares of the measured sum."""

    name: str
    operations: int
    mean_us: float
    likely: float
    slow: float
    fast: float
    guessed: int
    told: float
    error_of_told: float
    saves_measured: float
    saves_inferred: float

    def __str__(self) -> str:
        encloses = "yes" if self.fast <= 0 <= self.slow else "no"
        slow = "any" if np.isinf(self.slow) else f"{self.slow:+.1%}"
        return (
            f"{self.name:34} {self.operations:7,} {self.mean_us:9.2f} {self.likely:+8.1%} {self.fast:+8.1%} "
            f"{slow:>8} {encloses:>8} {self.guessed:8,} {self.told:7.1%} {self.error_of_told:+9.1%} "
            f"{self.saves_measured:8.2%} {self.saves_inferred:8.2%}"
        )


def compare(trace: Path, latency_ns: int) -> Row:
    """Infer the GPU times of one trace's run, and compare them with the measured ones."""
    profile = read_nsight(trace) if trace.suffix == ".sqlite" else read_pytorch([trace])
    run = profiled_run(profile, findings(profile, "").timeline.site)
    known = _known_idle_before(profile, run)
    counted = known & (run.work.measured > 0)
    if not counted.any():
        return Row(trace.stem, 0, np.nan, np.nan, np.nan, np.nan, 0, np.nan, np.nan, np.nan, np.nan)
    nothing = np.uint8(Action.NONE)
    hidden = replace(
        run.work,
        measured=np.full(len(run.timeline), -1, np.int64),
        began=None,
        action=np.where(known, run.work.action, nothing),
        stream=np.where(known, run.work.stream, np.int32(-1)),
    )
    exact = infer_gpu_times(run.timeline, run.work, latency_ns)
    inferred = infer_gpu_times(run.timeline, hidden, latency_ns)
    total = int(run.work.measured[counted].sum())
    explicit = run.timeline.kind == Kind.SYNCHRONIZATION
    length = int((run.timeline.start + run.timeline.duration + run.timeline.gap).max())
    saves = [
        Replay(run.timeline, work, times).without(explicit).likely_s * 1e9 / length
        for work, times in ((run.work, exact), (hidden, inferred))
    ]
    sums = [int(times.gpu[counted].sum()) for times in (inferred.likely, inferred.slow, inferred.fast)]
    errors = [float("inf") if one >= ENDLESS_NS // 2 else one / total - 1 for one in sums]
    operations = int(counted.sum())
    told = counted & ~_guessed(run.timeline, hidden, latency_ns)
    told_ns = int(run.work.measured[told].sum())
    likely, slow, fast = errors
    return Row(
        name=trace.stem,
        operations=operations,
        mean_us=total / operations / 1e3,
        likely=likely,
        slow=slow,
        fast=fast,
        guessed=operations - int(told.sum()),
        told=told_ns / total,
        error_of_told=int(inferred.likely.gpu[told].sum()) / told_ns - 1 if told_ns else np.nan,
        saves_measured=saves[0],
        saves_inferred=saves[1],
    )


def _guessed(timeline: Timeline, work: DeviceWork, latency_ns: int) -> NDArray[np.bool_]:
    """Return the operations of which no wait shows how long they take, as `infer_gpu_times` counts them."""
    shown, _ = find_segment_lengths(timeline, work, latency_ns)
    expected = expect_times(
        timeline, work, find_equal_work(timeline, work), shown, shown.likely_length, SMALL_TRANSFER_NS
    )
    return expected.unseen | (expected.gpu < 0)


def _known_idle_before(profile: Profile, run: ProfiledRun) -> NDArray[np.bool_]:
    """Return the calls that come after all work of their process that no recorded call gave to the GPU, shape (n,)."""
    calls = profile.calls
    known = np.ones(len(calls), bool)
    for process in np.unique(profile.unlaunched.process).tolist():
        over = profile.unlaunched.end[profile.unlaunched.process == process].max()
        mine = calls.process == process
        waits = mine & (run.timeline.wait > 0) & (run.timeline.kind == Kind.SYNCHRONIZATION) & (calls.end >= over)
        known &= ~mine | (calls.start >= calls.end[waits].min(initial=np.iinfo(np.int64).max))
    return known


def main() -> None:
    """Compare what the command line names, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, nargs="+", metavar="TRACE")
    parser.add_argument(
        "--latency", type=int, default=3_000, help="least nanoseconds of a launch and a wait beyond the work (3000)"
    )
    arguments = parser.parse_args()
    print(f"a launch and a wait take at least {arguments.latency:,} ns beyond the work")
    print(
        f"{'trace':34} {'GPU ops':>7} {'mean us':>9} {'likely':>8} {'fast':>8} {'slow':>8} {'encloses':>8} "
        f"{'guessed':>8} {'told':>7} {'its error':>9} {'saves':>8} {'inferred':>8}"
    )
    for trace in arguments.traces:
        print(compare(trace, arguments.latency))


if __name__ == "__main__":
    main()
