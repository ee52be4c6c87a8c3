"""Runs the program for a stage and describes the run; shared by the four measuring stages."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from ffm.driver.analysis import identity_of
from ffm.driver.library import read_library
from ffm.driver.search import NOT_FOUND, find_driver
from ffm.errors import ProgramError
from ffm.instrument.modes import Mode
from ffm.instrument.probing.remembered import wait_function
from ffm.instrument.probing.wait_function import WaitFunction
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording, read_recordings, unbegun_recordings
from ffm.instrument.session.cut import Lasting
from ffm.instrument.session.instruments import PAGES, HeapRequest, Instruments
from ffm.instrument.session.open_files import require_open_files
from ffm.instrument.session.portion import Asked, Iterations
from ffm.instrument.session.program import Ending, resolve_program
from ffm.instrument.session.runner import Outcome, run_instrumented
from ffm.instrument.session.standard_input import read_input, require_input
from ffm.results.documents.run import (
    Driver,
    ExitStatus,
    HookOutcome,
    ProcessRecord,
    Run,
    StandardInput,
    working_directory,
)
from ffm.results.folder.identity import begin_run
from ffm.results.folder.output import where_output
from ffm.results.folder.paths import ResultsFolder
from ffm.results.vocabulary import OrdinaryCause
from ffm.stages.portions import measured_portion

LEAST_ROOM = 2 << 20
"""Bytes: a disk with less cannot take the largest chunk of a recording."""

Watch = Literal["pages", "trace"]


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asked to measure."""

    command: list[str]
    folder: ResultsFolder
    timeout_s: float | None
    watch: Watch = "pages"
    """How the memory stage observes accesses: by protecting pages, or by following every load and store."""
    ordinary_memory: bool = True
    """Whether kernels may use ordinary host memory by its address, if the GPU can."""
    accepted_status: int = 0
    """The exit code with which the program may end instead of 0."""
    chosen: list[str] | None = None
    """The keys of the stacks to which the memory stage is limited; None for all."""
    portion: Asked | None = None
    """What stage 2 measures of the run, and then those after it too; None for all."""
    for_s: float | None = None
    """How many seconds after the first recorded call the recording, and then the program, is ended; None for never."""
    leave: bool = False
    """Leave the program running then."""
    stdin: Path | None = None
    """The file that the program reads from its standard input; None if that is empty."""
    last_s: float | None = None
    """Keep only this many seconds at the end of the traced run; None for all of it."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """A run and its processes' recordings, in the order of `read_recordings`."""

    run: Run
    recordings: list[Recording]
    runs: dict[str, str]
    """The run that its document describes, and those it is built on (`ffm.results.folder.identity`)."""


class _Search:
    """Finds the wait function of each driver that a program loads, and remembers it for the run's description."""

    def __init__(self) -> None:
        self.found: dict[Path, WaitFunction] = {}

    def __call__(self, driver: Path) -> WaitFunction:
        self.found[driver] = wait_function(driver)
        return self.found[driver]


def measure(
    stage: str,
    request: Request,
    *,
    on: dict[str, str],
    functions: Sequence[str] = (),
    mode: Mode = Mode.NONE,
    plan: Path | None = None,
    own_pages: Sequence[HeapRequest] | None = None,
    trace: bool = False,
    ranges: bool = False,
    portion: Asked | None = None,
    until: Lasting | None = None,
    unread: Path | None = None,
) -> Measurement:
    """Run the program with a stage's instruments; `own_pages` is for the page watch, and says whose blocks an earlier
    run transferred; `trace` is for the other watch, `ranges` for what the program marks with NVTX.

    `on` names the runs that it is built on. `until` says when to end the program; if it is None, the request does.
    `unread` is a file that says which of their parameters kernels never read (`ffm.stages.plan_files`).
    The run is described, and its recordings stay readable, even if the program failed. The caller decides
    (`require_sound`) whether a failed run is good enough.

    Raises:
        InstrumentError: The program could not be started or instrumented.
        ProgramError: It loaded no driver, or the disk filled up.
    """
    request.folder.make()
    runs = begin_run(request.folder.root, stage, on)
    folder, search = request.folder.fresh_recordings(stage), _Search()
    stdin, started = _described_input(request.stdin), datetime.now(UTC).isoformat(timespec="seconds")
    outcome = run_instrumented(
        request.command,
        Instruments(
            folder,
            list(functions),
            mode,
            plan,
            search,
            preloaded=() if own_pages is None else (PAGES,),
            own_pages=tuple(own_pages or ()),
            trace=trace,
            ranges=ranges or isinstance(portion, Iterations),
            portion=portion,
            lasting=until or (None if request.for_s is None else Lasting(request.for_s)),
            leave=request.leave,
            last_s=request.last_s,
            unread=unread,
        ),
        output=request.folder.output(stage),
        timeout_s=request.timeout_s,
        stdin=request.stdin,
    )
    recordings = _require_recordings(request, outcome, folder, stage)
    run = _describe(stage, started, outcome, recordings, search.found, request, stdin)
    measured = measured_portion(portion, recordings, folder, request.command[0]) if outcome.ending.sound else None
    if measured is not None:
        measured = msgspec.structs.replace(measured, left=run.status.left or measured.left)
        run = msgspec.structs.replace(run, portion=measured, waiting_span_s=None)
    return Measurement(run, recordings, runs)


def _described_input(file: Path | None) -> StandardInput | None:
    return None if file is None else StandardInput(**dataclasses.asdict(read_input(file)))


def _require_recordings(request: Request, outcome: Outcome, folder: Path, stage: str) -> list[Recording]:
    """Return the recordings of a run, of which none is cut off."""
    recordings = read_recordings(folder)
    if not recordings:
        raise ProgramError(_no_driver(request, outcome, stage))
    if any(recording.lost for recording in recordings):
        raise ProgramError(_disk_full(request, recordings, stage))
    return recordings


def require_program(request: Request) -> None:
    """Refuse what cannot be started, or measured from here, before the results of an earlier run are touched.

    Raises:
        FfmError: Says what is wrong with it.
    """
    for word in request.command:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise ProgramError(
                f"The program cannot be measured with the argument {word!r}: it is not UTF-8, and the results hold "
                "the command as text. Call the program from a script that contains the argument, and measure that."
            ) from None
    resolve_program(request.command)
    require_open_files(os.getpid())
    if request.stdin is not None:
        require_input(request.stdin)


def require_sound(run: Run, request: Request) -> None:
    """Refuse a run whose program did not end by itself with exit code 0, or the accepted one.

    Raises:
        ProgramError: Says how the program ended, and where the recordings are.
    """
    status = run.status
    operations = sum(process.operations for process in run.processes)
    if status.sound:
        return
    kept = (
        f"{where_output(request.folder.output(run.stage))} The {operations} operations recorded until then are kept in "
        f"{request.folder.recordings(run.stage)}."
    )
    if status.timed_out:
        raise ProgramError(
            f"{request.command[0]} exceeded the time limit of {request.timeout_s:g} s and was stopped in the "
            f"{run.stage} run. {kept} Give it a longer --timeout, or measure it for a time (--for) if it never ends by "
            "itself."
        )
    other = "" if status.code is None else f" If it should end so, give --accept-status {status.code}."
    raise ProgramError(
        f"{request.command[0]} {status} in the {run.stage} run. {kept}{_translated(run, request)} Fix the program or "
        f"its arguments, and run the stage again.{other}{_forbidden(status)}"
    )


def _disk_full(request: Request, recordings: list[Recording], stage: str) -> str:
    """Say what could not be recorded: operations, or the stacks and modules that they refer to."""
    lost = sum(recording.lost for recording in recordings)
    kept = sum(len(recording.operations) for recording in recordings)
    counts = f"{lost} records were lost ({kept} operations were kept, in {request.folder.recordings(stage)})"
    disk = os.statvfs(request.folder.root)
    if disk.f_bavail * disk.f_frsize < LEAST_ROOM:
        return (
            f"The disk filled up in the {stage} run: {counts}. Make room, or choose another folder with --results, and "
            "run the stage again."
        )
    return (
        f"A process of the program could not write its recording in the {stage} run: {counts}. Either the disk was "
        "full for a while, or over its quota; or the process had given up what it takes: it had changed its user or "
        "root folder, or limited its memory or the size and number of its files. Let it do so later, or not at all, "
        "and run the stage again."
    )


def _translated(run: Run, request: Request) -> str:
    """Return a sentence that names the trace as a possible cause if the run was traced; otherwise nothing."""
    if request.watch != "trace" or run.stage != "memory":
        return ""
    return (
        " If it ends well in the other stages, `--watch trace` may be the cause: runtimes that handle SIGSEGV for "
        "themselves do not find their own code, which is translated (Java, Mono, SBCL). Use `--watch pages` for these."
    )


def _forbidden(status: Ending | ExitStatus) -> str:
    """Return what a filter of system calls must let through, to follow how the program ended; mostly empty."""
    if status.signal != "SIGSYS":
        return ""
    return (
        " A filter of system calls (seccomp) may have ended it: recording takes fallocate, mmap, mprotect, madvise, "
        "munmap, rt_sigprocmask, and after stage 1 openat and rt_sigreturn, which such a filter must allow while the "
        "program is measured."
    )


def _no_driver(request: Request, outcome: Outcome, stage: str) -> str:
    program = request.command[0]
    output = where_output(request.folder.output(stage))
    if outcome.ending.cut is not None:
        return (
            f"{program} made no call of a CUDA driver in {outcome.wall_s:.2f} s, and was ended by ffm. Measure it for "
            f"longer, or while it has work. {output}"
        )
    if outcome.ending.timed_out:
        return (
            f"{program} exceeded the time limit of {request.timeout_s:g} s before it used a CUDA driver, and was "
            f"stopped. {output} Raise the limit (--timeout), or leave it out."
        )
    if not outcome.ending.sound:
        return (
            f"{program} {outcome.ending} before it used a CUDA driver. {output} Try it without ffm; `ffm doctor` "
            f"examines this machine's driver.{_forbidden(outcome.ending)}"
        )
    if outcome.processes:
        return f"{program} loaded {outcome.processes[0].driver} but never called it. There is nothing to measure."
    why = "There is nothing to measure." if find_driver() else f"There is none on this machine: {NOT_FOUND}."
    return f"{program} ran to its end without loading a CUDA driver (libcuda.so). {why} {output}"


def _describe(
    stage: str,
    started: str,
    outcome: Outcome,
    recordings: list[Recording],
    found: dict[Path, WaitFunction],
    request: Request,
    stdin: StandardInput | None,
) -> Run:
    driver_path = next((process.driver for process in outcome.processes if process.driver), None)
    hooks = next((process.hooks for process in outcome.processes if process.hooks), [])
    return Run(
        stage=stage,
        command=outcome.command,
        stdin=stdin,
        blocking_launches=os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0"),
        working_directory=working_directory(),
        started=started,
        wall_s=outcome.wall_s,
        preparation_s=outcome.held.seconds,
        held_beside_s=outcome.held.beside_s,
        user_s=outcome.user_s,
        system_s=outcome.system_s,
        delayed_s=outcome.delayed_s,
        waiting_span_s=None if outcome.ending.cut or request.last_s else _waiting_span_s(recordings),
        status=ExitStatus(
            code=outcome.ending.code,
            signal=outcome.ending.signal,
            timed_out=outcome.ending.timed_out,
            cut=outcome.ending.cut,
            left=outcome.ending.left,
            accepted=request.accepted_status,
        ),
        processes=[
            ProcessRecord(
                process_id=recording.process_id,
                executable=recording.executable,
                rank=recording.rank,
                recording=str(recording.path.relative_to(request.folder.root)),
                threads=recording.threads,
                operations=len(recording.operations),
                lost=recording.lost,
                unfinished=recording.unfinished,
                python=recording.python_version,
                python_readable=recording.python_readable,
                ordinary_memory=recording.ordinary_memory,
                ordinary_kernel=recording.ordinary_kernel,
                ordinary_offset=recording.ordinary_offset,
                ordinary_cause=_ordinary_cause(recording.ordinary_cause),
            )
            for recording in recordings
        ],
        unrecorded=len(unbegun_recordings(request.folder.recordings(stage))),
        hooks=[HookOutcome(function=name, how=how, reason=reason) for name, how, reason in hooks],
        driver=None if driver_path is None else _driver(driver_path, found.get(driver_path)),
    )


def _waiting_span_s(recordings: list[Recording]) -> float | None:
    """Return `Run.waiting_span_s`. Waits are what all stages record; what getting into the program takes is outside."""
    spans = []
    for recording in recordings:
        waits = np.flatnonzero(recording.operations["wait"])
        start, duration = (recording.operations[name][waits].astype(np.int64) for name in ("start", "duration"))
        ends = start + duration
        if len(ends) > 1:
            spans.append(int(ends.max() - ends[np.argsort(start, kind="stable")[1]]) / 1e9)
    return max(spans, default=None)


def _driver(path: Path, found: WaitFunction | None) -> Driver:
    return Driver(
        path=str(path),
        build_id=identity_of(read_library(path)),
        wait_function=None if found is None else found.offset,
        wait_function_found=_how_found(found),
    )


def _how_found(found: WaitFunction | None) -> str:
    if found is None:
        return "it was not searched for"
    if found.offset is None:
        return f"not found: {found.reason}"
    calls = f"{len(found.waiting_calls)} blocked calls, and verified with each of them"
    if found.others:
        return f"{len(found.offsets)} functions that together serve {calls}"
    return f"common to {calls}"


def _ordinary_cause(code: int) -> OrdinaryCause | None:
    return next((cause for cause in OrdinaryCause if constant(f"FFM_ORDINARY_{cause.name}") == code), None)
