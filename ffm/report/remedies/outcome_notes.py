"""What to know about the runs of a corrected program, other than how they ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ffm.remedy.correct import Comparison
from ffm.remedy.layout import constant
from ffm.remedy.worth import ENTERING_S
from ffm.results.stored import Results
from ffm.results.variation import DIFFERS

STOPPED = {
    "FFM_STOP_FUNCTIONS": "a driver function that corrections rely on is missing or could not be replaced",
    "FFM_STOP_CONTEXTS": "the program uses several contexts",
    "FFM_STOP_STREAMS": "the program uses more streams than corrections keep in order",
    "FFM_STOP_SHARED": "the program detached from a context that it had attached to more than once, or began to share "
    "memory or events with others",
    "FFM_STOP_ERROR": "work on the GPU failed; where a removed wait would have returned the error, the program "
    "learns of it from a later call",
}


def notes_of_runs(comparison: Comparison, command: list[str], results: Results) -> list[str]:
    """Return what the runs show in addition to their outcome."""
    notes = notes_of_stops(process.values["stopped"] for process in comparison.counted)
    unread = sum(process.values["launches_unread"] for process in comparison.counted)
    if unread:
        notes.append(
            f"{unread} kernels were launched while pinned memory existed, by a driver older than CUDA 12.4, which "
            "does not reveal their parameters: a kernel that writes such memory by its host address would go "
            "unnoticed."
        )
    if command != results.document.command:
        notes.append("The command is not the measured one: call stacks that were not measured run uncorrected.")
    else:
        notes += measured_otherwise(results.document.wall_s, [run.wall_s for run in comparison.bare])
    return notes


def notes_of_stops(reasons: Iterable[int]) -> list[str]:
    """Return why corrections stopped in some processes, each reason once; 0 is none."""
    stopped = {constant(name): why for name, why in STOPPED.items()}
    return [f"Corrections stopped: {stopped[reason]}." for reason in sorted(set(reasons) - {0})]


def measured_otherwise(measured_s: float, bare_s: Sequence[float]) -> list[str]:
    """Return a note if, when it was measured, the program ran faster or slower than in any run without corrections
    since, by more than runs vary: estimate and saving are then those of different machines.
    """
    apart_s = DIFFERS * measured_s
    if measured_s - apart_s - ENTERING_S <= max(bare_s) and min(bare_s) <= measured_s + apart_s:
        return []
    took = f"{min(bare_s):.3f} to {max(bare_s):.3f} s" if len(bare_s) > 1 else f"{bare_s[0]:.3f} s"
    return [
        f"Without corrections, the program took {took}, and {measured_s:.3f} s when "
        "it was measured: the machine, or what else runs on it, has changed. The estimate is for the run that was "
        "measured. Measure the program again to compare an estimate with what is saved."
    ]
