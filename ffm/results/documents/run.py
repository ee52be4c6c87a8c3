"""One measured execution of the program, in documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ffm.results.documents.fields import Argument, Count, Number, Record, Seconds
from ffm.results.vocabulary import OrdinaryCause


class ExitStatus(Record, frozen=True, kw_only=True):
    """How a program ended: an exit code, the signal that ended it, or our own time limit.

    `accepted` is the exit code other than 0 with which the user said that it may end.
    """

    code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    accepted: int = 0
    cut: Literal["time", "interruption"] | None = None
    """Why ffm ended the recording, and then the program, before it ended by itself: it had been measured for the time
    asked for, or ffm was interrupted. Then how it ended says nothing about it.
    """
    left: bool = False
    """After that, the program was left running."""

    @property
    def sound(self) -> bool:
        """Whether the program ended by itself as it should, or was measured until ffm ended the recording."""
        return self.cut is not None or (self.code in (0, self.accepted) and not self.timed_out)

    def __str__(self) -> str:
        """Say it after the program's name."""
        if self.left:
            return "was left running by ffm"
        if self.cut is not None:
            return "was ended by ffm"
        if self.timed_out:
            return "exceeded the time limit and was stopped"
        if self.signal is not None:
            return f"was ended by the signal {self.signal}"
        return f"exited with code {self.code}"


class ProcessRecord(Record, frozen=True, kw_only=True):
    """One process of a run that loaded a driver."""

    process_id: int
    executable: str
    rank: int | None
    """Rank under an MPI launcher, from its environment; None if there is none."""
    recording: str
    """File name of the raw recording, relative to the document."""
    threads: Count
    """That called the driver or were sampled."""
    operations: Count
    lost: Count
    """Operations that could not be recorded (disk full); 0 in a complete run."""
    unfinished: Count = 0
    """Driver calls that had begun when ffm ended the recording, and returned later: they are not recorded."""
    python: str = ""
    """Version of its Python interpreter, such as `3.12.1`."""
    python_readable: bool = False
    """Whether its stacks contain Python functions."""
    ordinary_memory: bool = False
    """Whether a kernel received what may be the address of ordinary memory: everything counts as used from then on."""
    ordinary_kernel: str = ""
    """The kernel, by the name in its code or the start of that; empty if it is not known."""
    ordinary_offset: Number = 0
    """Where that is, in bytes from the start of its parameters."""
    ordinary_cause: OrdinaryCause | None = None


class HookOutcome(Record, frozen=True, kw_only=True):
    """How one driver function was hooked: `replace-fast`, `replace`, `attach`, `shared` (another name of hooked code)
    or `failed`, with the reason."""

    function: str
    how: str
    reason: str = ""


class StandardInput(Record, frozen=True, kw_only=True):
    """The file that was a run's standard input, so that others can be given the same."""

    file: Argument
    """Its absolute path."""
    size: Count
    """Bytes."""
    sha256: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    """Of its content."""


class Driver(Record, frozen=True, kw_only=True):
    """The GPU driver of a run, and its internal wait function as an offset from its load base."""

    path: str
    build_id: str
    wait_function: int | None
    wait_function_found: str
    """How the wait function was found, or why not, in one phrase."""


class Portion(Record, frozen=True, kw_only=True):
    """What was measured of a run. Outside of it, operations were let through without a record, and nothing is judged.

    Either a window (`start_s` to `end_s`, in seconds since the first driver call), or iterations that the program
    marked: all with the name `ranges` (any, if it is empty), or every n-th of them; or, with `cut`, all of the run
    until ffm ended the recording.
    """

    start_s: Seconds | None = None
    end_s: Seconds | None = None
    """None for the end of the run."""
    first_call: Count = 0
    end_call: Count | None = None
    """The window in calls of the process that transfer, set, launch, wait, allocate or free, by which the later stages
    find it again.
    """
    ranges: str | None = None
    every: Count = 1
    stretches: Count
    """How many pieces of the run were measured."""
    measured_s: Seconds
    """Their time, over all processes that used the driver at most; in stage 5, without what the probes took."""
    iterations: Count = 0
    """Marked iterations of the run."""
    judged: Count = 0
    """Those of them that were measured and judged."""
    last_s: Seconds | None = None
    """Only this many seconds before its end were kept, if it took longer."""
    dropped: Count = 0
    """Operations that were recorded before these."""
    cut: bool = False
    left: bool = False
    """The program was left running after that."""


class Run(Record, frozen=True, kw_only=True):
    """One measured execution of the program."""

    stage: str
    command: Annotated[list[Argument], msgspec.Meta(min_length=1)]
    working_directory: str
    started: str
    """ISO 8601, UTC."""
    wall_s: Seconds
    """From the start of the program to its end, without `preparation_s`."""
    preparation_s: Seconds
    """For how long the run stood still because a process was held to be hooked: the first process if it uses the driver
    itself, otherwise any of those that it launched (`ffm.instrument.session.held_times`).
    """
    held_beside_s: Seconds = 0.0
    """The part of `preparation_s` in which another process ran: `wall_s` is too short by up to this if that process
    waited for no other.
    """
    user_s: Seconds
    system_s: Seconds
    delayed_s: Seconds | None = None
    """How long the program's main thread was ready to run but had no processor, because others had it; None if the
    kernel does not tell.
    """
    waiting_span_s: Seconds | None = None
    """From the end of the second wait for the GPU to that of the last one, in the process in which that is longest: the
    first may be anywhere in a call that creates a context. None if there are none, or only a part of the run was
    recorded.
    """
    status: ExitStatus
    processes: list[ProcessRecord]
    unrecorded: Count = 0
    """Further processes, which ended before their recordings began, and so before they could call the driver."""
    hooks: list[HookOutcome]
    driver: Driver | None
    portion: Portion | None = None
    """What of it was measured; None for all."""
    stdin: StandardInput | None = None
    """What the program's standard input was; None if it was empty."""
    blocking_launches: bool = False
    """Whether the environment told the driver to wait in each launch (`CUDA_LAUNCH_BLOCKING`)."""

    @property
    def sees_waits(self) -> bool:
        """Whether the driver's internal wait function was hooked, which shows each wait and its length."""
        return self.driver is None or self.driver.wait_function is not None


def working_directory() -> str:
    """Return the current folder as documents name it."""
    return os.fsencode(Path.cwd()).decode(errors="replace")
