"""Which portion of a run a stage should measure, and which it did measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from ffm.errors import DocumentError, ProgramError
from ffm.evidence.marked_iterations import marked_iterations
from ffm.evidence.stretches import stretches_of
from ffm.instrument.recording.reader import Recording
from ffm.instrument.session.cut import SLOWEST, Lasting
from ffm.instrument.session.portion import WHOLE, Asked, Calls, Iterations, Window
from ffm.results.documents.document import Document
from ffm.results.documents.measured import Tracing
from ffm.results.documents.run import Portion
from ffm.results.folder.identity import read_latest
from ffm.results.folder.paths import ResultsFolder


def read_tracing(folder: ResultsFolder) -> Tracing | None:
    """Return what stage 2 wrote; None if it has not run.

    Raises:
        DocumentError: That is damaged or out of date.
    """
    return read_latest(Tracing, folder, "tracing") if folder.document("tracing").exists() else None


def traced_portion(tracing: Tracing | None) -> Calls | Iterations | None:
    """Return the portion that stage 2 measured, if it has run, for the stages after it; None for the whole run.

    Raises:
        DocumentError: No other run can find this portion.
    """
    portion = None if tracing is None or tracing.run is None else tracing.run.portion
    if portion is not None and portion.last_s is not None:
        raise DocumentError(
            f"Stage tracing kept the last {portion.last_s:g} s of its run, which no other run can find again. Look at "
            "them with `ffm run --quick --last`, or run stage tracing without --last."
        )
    if portion is None or portion.cut:
        return None
    if portion.ranges is not None:
        return Iterations(portion.ranges, portion.every)
    return Calls(portion.first_call, WHOLE if portion.end_call is None else portion.end_call)


def measured_portion(
    asked: Asked | None, recordings: Sequence[Recording], folder: Path, program: str
) -> Portion | None:
    """Describe what was measured of a run, whose recordings are in `folder`.

    Raises:
        ProgramError: Nothing was, or a window is not clear because several processes use the driver.
    """
    if asked is None:
        return _last(recordings) or _until_cut(recordings)
    measured = [recording for recording in recordings if len(recording.stretches) and _judged(recording)]
    marked = marked_iterations(list(recordings), folder) if isinstance(asked, Iterations) else []
    mine = [
        one for one in marked if isinstance(asked, Iterations) and (not asked.name or fnmatchcase(one.name, asked.name))
    ]
    if not measured:
        raise ProgramError(_why_nothing(asked, recordings, sorted({one.name for one in marked}), len(mine), program))
    if isinstance(asked, Window) and len(measured) > 1:
        raise ProgramError(
            f"{len(measured)} processes of {program} used the driver in the window, and where it lies in each of the "
            "other runs is not known. Mark iterations with ffm.iteration, and choose them with --ranges NAME."
        )
    stretches = [stretches_of(recording) for recording in measured]
    whole = asked if isinstance(asked, Iterations) else None
    first = measured[0].stretches[0]
    return Portion(
        start_s=asked.start_s if isinstance(asked, Window) else None,
        end_s=asked.end_s if isinstance(asked, Window) and not math.isinf(asked.end_s) else None,
        first_call=int(first["calls"]) if whole is None else 0,
        end_call=int(first["calls_closed"]) if whole is None and first["closed"] else None,
        ranges=None if whole is None else whole.name,
        every=1 if whole is None else whole.every,
        stretches=sum(len(one) for one in stretches),
        measured_s=max(float((one.end - one.begin).sum()) / 1e9 for one in stretches),
        iterations=len(mine),
        judged=sum(int((one.judged_end > one.judged_begin).sum()) for one in stretches) if whole is not None else 0,
    )


def _last(recordings: Sequence[Recording]) -> Portion | None:
    """Describe the last seconds of a run; None if all of it was kept."""
    dropped = sum(recording.dropped for recording in recordings)
    if not dropped:
        return None
    last_ns = max(recording.kept for recording in recordings)
    lasted = [
        int((recording.operations["start"] + recording.operations["duration"]).max())
        - int(recording.operations["start"].min())
        for recording in recordings
        if len(recording.operations)
    ]
    return Portion(
        last_s=last_ns / 1e9,
        dropped=dropped,
        cut=any(recording.finished for recording in recordings),
        stretches=1,
        measured_s=min(max(lasted, default=0), last_ns) / 1e9,
    )


def _until_cut(recordings: Sequence[Recording]) -> Portion | None:
    """Describe the whole of a run until ffm ended its recordings; None if it did not."""
    lasted = [
        max(recording.finished - int(recording.operations["start"].min()), 0)  # the first call may begin later
        for recording in recordings
        if recording.finished and len(recording.operations)
    ]
    return Portion(cut=True, stretches=1, measured_s=max(lasted) / 1e9) if lasted else None


def lasting(folder: ResultsFolder, seconds: float | None) -> Lasting | None:
    """Return how long a stage after the traced one is measured: until it has seen as much, and for `seconds` at most.

    Raises:
        DocumentError: What stage 2 wrote is damaged or out of date.
    """
    run = read_latest(Tracing, folder, "tracing").run if folder.document("tracing").exists() else None
    if run is None or run.status.cut is None:
        return None if seconds is None else Lasting(seconds)
    operations = tuple(process.operations for process in run.processes)
    whole = run.portion is not None and run.portion.cut  # otherwise it was measured in parts of its time
    measured_s = run.portion.measured_s if whole and run.portion is not None else run.wall_s
    return Lasting(measured_s * SLOWEST if seconds is None else seconds, operations)


def _judged(recording: Recording) -> bool:
    """Return whether anything that was measured is also judged: a sample needs the iteration after the first one."""
    stretches = stretches_of(recording)
    return bool((stretches.judged_end > stretches.judged_begin).any())


def require_same_portion(documents: Sequence[Document]) -> None:
    """Refuse runs of which different portions were measured.

    Raises:
        DocumentError: Says which stages to run again.
    """
    runs = [document.run for document in documents if document.run is not None]
    cut = any(run.status.cut is not None for run in runs)  # a window need not have ended by then
    asked = {
        None
        if run.portion is None or run.portion.cut
        else (run.portion.first_call, run.portion.ranges, cut or run.portion.end_call is None)
        for run in runs
    }
    if len(asked) > 1:
        raise DocumentError(
            "The stages measured different portions of the run. Run the stages memory, sync-use and analysis again: "
            "they measure the portion that stage tracing did."
        )


def _why_nothing(asked: Asked, recordings: Sequence[Recording], names: list[str], marks: int, program: str) -> str:
    if isinstance(asked, Iterations):
        if not names:
            return (
                f"{program} marked no iterations while it used the driver, so nothing was measured. Mark them in its "
                "Python code (`with ffm.iteration(NAME):`) or with NVTX, or choose a window of seconds "
                "(--window START..END)."
            )
        if not marks:
            return (
                f"{program} marked no iterations {asked.name!r}, so nothing was measured. It marked "
                f"{', '.join(repr(name) for name in names)}."
            )
        return (
            f"{program} marked {marks} iterations, too few for 1/{asked.every} of them: choose a smaller N, or leave "
            "out --iterations."
        )
    if isinstance(asked, Calls):
        return (
            f"{program} made fewer than {asked.first:,} calls of the driver in this run, so it did not reach the "
            "window to measure. Choose a window that lies earlier."
        )
    ends = [recording.operations["start"] + recording.operations["duration"] for recording in recordings]
    starts = [int(recording.operations["start"].min()) for recording in recordings if len(recording.operations)]
    lasted = (max(int(end.max()) for end in ends if len(end)) - min(starts)) / 1e9 if starts else 0.0
    return (
        f"The window begins {asked.start_s:g} s after the program's first driver call, but {program} made no call of "
        f"the driver from then on (the last one that is known ended after {np.round(lasted, 2):g} s). Choose a window "
        "that lies earlier."
    )
