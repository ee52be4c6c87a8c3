"""Runs a program once, instrumented, and reports how that went.

The program is our own child, so the operating system provides its exit status and times. At the gate (`gate.py`) the
instruments are put into it and into each process that it starts (`hooking.py`); then they stay out of the way.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ffm import marks
from ffm.errors import InstrumentError
from ffm.instrument.session.attaching import UnresponsiveError
from ffm.instrument.session.cut import Cut
from ffm.instrument.session.frida_home import home, outer_environment
from ffm.instrument.session.gate import CUT_OFF, NO_DRIVER, Gate, loads_no_driver
from ffm.instrument.session.held_times import Held, HeldTimes
from ffm.instrument.session.hooking import Hooking, Instrumented
from ffm.instrument.session.instruments import (
    Instruments,
    marks_environment,
    ranges_environment,
    registers_environment,
)
from ffm.instrument.session.left_behind import await_left_behind
from ffm.instrument.session.open_files import require_open_files
from ffm.instrument.session.permissions import check_tracing
from ffm.instrument.session.program import Ending, ending_of, reason_unreached, resolve_program
from ffm.instrument.session.program_end import ProgramEnd, await_end
from ffm.instrument.session.standard_input import standard_input
from ffm.whole_file import fresh_file

DYING_S = 2.0
"""Seconds until a process that was killed while it was instrumented has ended: Frida sees its connection close first.
"""

STARTS = 3
"""How often a program is started if Frida gives up on it before it has begun."""

_CUT_OFF = (
    "The process {process_id} of the program closed all descriptors by direct system calls, also those of the "
    "instruments, before it loaded the driver: it cannot be measured. Have it close them with close, close_range or "
    "closefrom of the C library, or load the driver first."
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One measured run. Times in seconds."""

    command: list[str]
    wall_s: float
    """The program's own time, without waiting at the gate and hooking."""
    held: Held
    user_s: float
    system_s: float
    delayed_s: float | None
    """As in `ffm.instrument.session.program_end.ProgramEnd`."""
    ending: Ending
    processes: list[Instrumented]
    """Processes that loaded a driver."""


def run_instrumented(
    command: list[str],
    instruments: Instruments,
    *,
    output: Path,
    timeout_s: float | None = None,
    stdin: Path | None = None,
) -> Outcome:
    """Run the program to its end, to the time limit, or as long as it is to be measured, with the instruments in place.

    If ffm is interrupted once something was recorded, the run is over, and its outcome says so. A program that is to be
    left running lives on however the run ends, unless ffm fails or the time limit is exceeded. A program that did not
    begin because the machine is too busy is started again.

    The program reads the file `stdin`, or nothing; its output goes to the file `output`. Recordings stay in
    `instruments.folder` however the run ends.

    Raises:
        InstrumentError: The program cannot be started, Frida cannot attach to it, or how it ended is unknown.
    """
    resolved = resolve_program(command)
    require_open_files(os.getpid())
    tracing = check_tracing()
    if not tracing.good:
        raise InstrumentError(
            f"No process can be instrumented on this machine: {tracing.says}. `ffm doctor` says what it needs."
        )
    for _ in range(STARTS - 1):
        with suppress(UnresponsiveError):
            return _run_once(command, resolved, instruments, output, timeout_s, stdin)
    return _run_once(command, resolved, instruments, output, timeout_s, stdin)


def _run_once(
    command: list[str],
    resolved: Path,
    instruments: Instruments,
    output: Path,
    timeout_s: float | None,
    stdin: Path | None,
) -> Outcome:
    """Run the program as `run_instrumented` does, but start it once.

    Raises:
        UnresponsiveError: Frida gave up on it before it had begun.
        InstrumentError: as there.
    """
    run = _Run(instruments)
    cut = Cut(instruments.folder, run.ask_to_end, run.kill, run.leave if instruments.leave else None)
    files = standard_input(stdin), fresh_file(output)
    with run, Gate(run.instrument, home()) as gate, files[0] as source, files[1] as sink, cut:
        run.gate = gate
        began = time.monotonic()
        program = run.start(command, resolved, source, sink)
        if instruments.lasting is not None:
            cut.after(instruments.lasting)
        end, timed_out = run.end_of(program, command[0], cut, timeout_s)
        if timed_out:
            gate.end_all()
        elif instruments.leave and cut.why is not None:
            run.hooking.leave()
        ended = time.monotonic() if cut.why is None else cut.at
    if run.gave_up is not None and not timed_out and cut.why is None:
        raise run.gave_up
    run.raise_failure()
    ending = ending_of(None if end.left else end.status, timed_out=timed_out and cut.why is None, cut=cut.why)
    if run.root in run.died_at_gate and not timed_out:
        raise InstrumentError(
            f"The program {command[0]} {ending} while the instruments were put into it, before it began. Run the "
            f"stage again; what it wrote is in {output}."
        )
    if not run.arrived:
        why = reason_unreached(resolved, end.status, output)
        raise InstrumentError(
            f"The program {command[0]} could not be instrumented: {why}. `ffm doctor` says whether others can."
        )
    held = run.held(began, ended)
    return Outcome(
        command=command,
        wall_s=ended - began - held.seconds,
        held=held,
        user_s=end.user_s,
        system_s=end.system_s,
        delayed_s=end.delayed_s,
        ending=ending,
        processes=run.hooking.processes(),
    )


class _Run:
    """The state of one run, shared by its threads."""

    gate: Gate

    def __init__(self, instruments: Instruments) -> None:
        self.root = 0
        self.arrived = False
        self.died_at_gate: set[int] = set()
        """Processes that ended while they were being instrumented."""
        self.gave_up: UnresponsiveError | None = None
        """Why the first process was killed before it ran code of the program."""
        self.stop = os.eventfd(0, os.EFD_CLOEXEC)
        """Readable once the run has failed, because then running the program to its end is useless."""
        self.leave = os.eventfd(0, os.EFD_CLOEXEC)
        """Readable once the program is to be left alone."""
        self._held = HeldTimes(lambda: self.gate.alive())
        self._instruments = instruments
        self._lock = threading.Lock()
        self._failure: str | None = None
        self.hooking = Hooking(instruments, self._held, self._fail, self._ends)

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            os.close(self.stop)
            os.close(self.leave)
            self.stop = -1

    def start(
        self, command: list[str], resolved: Path, source: IO[bytes] | int, sink: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start the program, which the gate holds before it runs code of its own: it reads `source`, and writes to
        `sink`.
        """
        instruments, base = self._instruments, outer_environment()
        try:
            program = subprocess.Popen(
                command,
                executable=resolved,
                env={
                    **ranges_environment(instruments),
                    **self.gate.environment(base, instruments.preloaded, tied=not instruments.leave),
                    **registers_environment(instruments, base),
                    marks.VARIABLE: str(instruments.folder.resolve()),
                    **marks_environment(instruments),
                },
                stdin=source,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that the time limit can stop everything it started
            )
        except OSError as error:
            raise InstrumentError(
                f"The program {command[0]} cannot be started: {error.strerror}. Try it without ffm."
            ) from error
        self.root = program.pid
        return program

    def end_of(
        self, program: subprocess.Popen[bytes], name: str, cut: Cut, timeout_s: float | None
    ) -> tuple[ProgramEnd, bool]:
        """Wait until the program and all that it started have ended; return how it did, and whether time was up."""
        until = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            end = await_end(
                program,
                timeout_s,
                stop=self.stop,
                end_others=self.gate.end_all,
                interrupt=cut.interrupt,
                leave=self.leave if self._instruments.leave else None,
            )
        except ChildProcessError:  # Frida, which waits for stops of its targets, took the end as well
            self.raise_failure()
            raise InstrumentError(
                f"Frida failed while it attached to {name}, and how the program ended is unknown. Run the stage again."
            ) from None
        try:
            return end, end.timed_out or not (end.left or self.others_end(until))
        except KeyboardInterrupt:
            if not cut.interrupt():
                raise
            return end, not self.others_end(None)

    def raise_failure(self) -> None:
        """Raise the error that occurred in a thread of the run."""
        if self._failure is not None:
            raise InstrumentError(self._failure)

    def _fail(self, sentence: str) -> None:
        with self._lock:
            self._failure = self._failure or sentence
            if self.stop >= 0:
                os.eventfd_write(self.stop, 1)

    def ask_to_end(self) -> None:
        """Send SIGTERM to all processes of the program, to each once."""
        with suppress(ProcessLookupError):
            os.killpg(self.root, signal.SIGTERM)
        self.gate.ask_to_end(self.root)

    def kill(self) -> None:
        """Kill them."""
        with suppress(ProcessLookupError):
            os.killpg(self.root, signal.SIGKILL)
        self.gate.end_all()

    def others_end(self, until: float | None) -> bool:
        """Wait for processes that the first one left behind; return false when the time is up."""
        return await_left_behind(self.gate.alive, self._users, until=until, stop=(self.stop, self.leave))

    def _ends(self, process_id: int) -> bool:
        return self.gate.ends(process_id, within_s=DYING_S)

    def _users(self) -> set[int]:
        """Return the processes that have loaded a driver."""
        return {process.process_id for process in self.hooking.processes()}

    def held(self, began: float, ended: float) -> Held:
        """Return how long the program waited for its processes to be hooked while the run lasted."""
        return self._held.of_run(self.root, self._users(), (began, ended))

    def instrument(self, process_id: int, reason: int) -> None:
        """Attach to a process that waits at the gate, and hook its driver as soon as it has one."""
        first, self.arrived = not self.arrived, True
        if reason == CUT_OFF:
            self._fail(_CUT_OFF.format(process_id=process_id))
            return
        child = self.root not in (0, process_id)
        if self.hooking.left or (child and (reason == NO_DRIVER or loads_no_driver(process_id))):
            return  # what is wrong with instrumenting shows at the first process, whatever that is
        with self._held.holding(process_id):
            try:
                self.hooking.attach(process_id)
            except UnresponsiveError as error:
                if first and self.root in (0, process_id):  # 0 if it comes here before `start` knows it
                    self.gave_up = error
                    with suppress(ProcessLookupError):
                        os.kill(process_id, signal.SIGKILL)  # before the gate lets it go
                else:
                    self._fail(str(error))
            except InstrumentError as error:
                if self._ends(process_id):
                    self.died_at_gate.add(process_id)
                else:
                    self._fail(str(error))
