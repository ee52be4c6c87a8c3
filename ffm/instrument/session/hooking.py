"""Puts the instruments into processes of the program, answers them while they run, and leaves the processes alone."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import frida

from ffm.driver.library import read_library
from ffm.errors import InstrumentError
from ffm.instrument.session.attaching import attaching, scripted
from ffm.instrument.session.frida_home import local_device
from ffm.instrument.session.held_times import HeldTimes
from ffm.instrument.session.instruments import FoundWait, Instruments, agent_script, configuration_of
from ffm.instrument.session.open_files import require_open_files
from ffm.instrument.session.untranslatable import UNTRANSLATABLE, compiled_by_go

COLLECTOR_FAILURES = {
    -1: "the recording could not be created (is the disk full, or the results folder not writable?)",
    -2: "the plan of what to do could not be read, or is damaged (run the command again)",
    -3: "the handlers of SIGSEGV, SIGBUS, SIGTRAP and SIGSYS could not be installed",
    -4: "system calls cannot be dispatched to the process: the kernel is older than Linux 5.11, or a filter of the "
    "program (seccomp) forbids prctl",
    -5: "the program has forbidden that its memory becomes executable (PR_SET_MDWE, as MemoryDenyWriteExecute of "
    "systemd does), so no function can be hooked (let it do so later, or not at all, while it is measured)",
}
"""What `ffm_collector_open` returns (`native/collector/collector.h`), or the agent in its place."""


@dataclass(slots=True)
class Instrumented:
    """One process of the program that loaded a driver, and the outcome of hooking it."""

    process_id: int
    driver: Path | None = None
    wait_function: FoundWait | None = None
    hooks: list[tuple[str, str, str]] = field(default_factory=list)
    """(function, how, reason) for each function found in the driver."""
    failure: str = ""


class Hooking:
    """The processes of one run that the instruments are in.

    Args:
        instruments: what is put into each of them.
        held: receives how long they wait for us.
        fail: receives what went wrong, in a sentence.
        ends: says whether a process is about to end, so that nothing is wrong if it does not answer.
    """

    def __init__(
        self, instruments: Instruments, held: HeldTimes, fail: Callable[[str], None], ends: Callable[[int], bool]
    ) -> None:
        self._instruments = instruments
        self._held = held
        self._fail = fail
        self._ends = ends
        self._lock = threading.Lock()
        self._processes: dict[int, Instrumented] = {}
        self._sessions: dict[int, tuple[Any, Any]] = {}
        """By process, its session and script. A session that is garbage-collected takes its script with it."""
        self._earlier: list[tuple[Any, Any]] = []  # those of processes that have replaced themselves by exec
        self.left = False
        """Whether the program is left alone."""

    def processes(self) -> list[Instrumented]:
        """Return those that have loaded a driver."""
        with self._lock:
            return [process for process in self._processes.values() if process.driver is not None]

    def attach(self, process_id: int) -> None:
        """Attach to a process that waits at the gate, and hook its driver as soon as it has one.

        Raises:
            UnresponsiveError: Frida gave up on it.
            InstrumentError: It cannot be instrumented, or has ended.
        """
        process = Instrumented(process_id)
        require_open_files(process_id)
        with attaching(process_id):
            session, script, messages = scripted(local_device(), process_id, agent_script())
            # The agent asks while the program's thread is inside dlopen. It is answered from a separate thread because
            # Frida's own thread must stay free to deliver the answer.
            threading.Thread(target=self._answer, args=(process, script, messages), daemon=True).start()
            with self._lock:
                self._processes[process_id] = process
                if process_id in self._sessions:
                    self._earlier.append(self._sessions[process_id])
                self._sessions[process_id] = (session, script)
            script.exports_sync.start(configuration_of(self._instruments))
        if self.left:  # since the process came to the gate
            self._detach(process_id, session, script)

    def leave(self) -> None:
        """Leave the program alone: from now on its hooks only lead to the originals, and its new processes have none.

        The hooks stay, as do the agent and the collector, because other threads may be executing them.
        """
        with self._lock:
            self.left = True
            sessions = dict(self._sessions)
        for process_id, (session, script) in sessions.items():
            self._detach(process_id, session, script)

    def _detach(self, process_id: int, session: Any, script: Any) -> None:
        try:
            with attaching(process_id):
                for owed in script.exports_sync.detach():
                    script.post({"type": owed, "refused": "the runner leaves the program"})
                script.eternalize()
                session.detach()
        except InstrumentError as error:
            if not self._ends(process_id):
                self._fail(str(error))

    def _answer(self, process: Instrumented, script: Any, messages: queue.SimpleQueue[Any]) -> None:
        while (message := messages.get()) is not None:
            if message["type"] == "error":
                self._fail(f"The agent failed in process {process.process_id}: {message.get('description')}")
                continue
            content = message["payload"]
            if content["type"] == "driver":
                began = time.monotonic()
                process.driver = Path(content["path"])
                self._send_plan(process, script)
                self._held.add(process.process_id, began)
            elif content["type"] == "hooks":
                process.hooks += [tuple(outcome) for outcome in content["outcomes"]]
                self._held.add(process.process_id, time.monotonic() - content["seconds"])
                _reply(script, {"type": "noted"})
            elif content["type"] == "untranslatable":
                self._fail(UNTRANSLATABLE[content["why"]].format(module=content["module"]))
            elif content["type"] == "failed":
                why = COLLECTOR_FAILURES.get(content["status"], f"status {content['status']}")
                process.failure = why
                self._fail(f"The collector could not start in process {process.process_id}: {why}.")
                _reply(script, {"type": "noted"})

    def _send_plan(self, process: Instrumented, script: Any) -> None:
        offsets: tuple[int, ...] = ()
        entries: dict[str, int] = {}
        exports: list[int] = []
        refused: str | None = None
        try:
            if self._instruments.trace and (module := compiled_by_go(process.process_id)):
                refused = UNTRANSLATABLE["goroutines"].format(module=module)
                self._fail(refused)
            elif process.driver is not None:
                process.wait_function = self._instruments.find_wait_function(process.driver)
                offsets = process.wait_function.offsets
                library = read_library(process.driver)
                entries, exports = library.behind_slots(), sorted(set(library.exports.values()))
        except Exception as error:  # the program waits for the answer, whatever happened here
            refused = str(error)
            self._fail(f"The driver {process.driver} could not be examined: {error}")
        plan = {"waitOffsets": offsets, "entries": entries, "exports": exports, "refused": refused}
        _reply(script, {"type": "plan", **plan})


def _reply(script: Any, message: dict[str, Any]) -> None:
    """Answer a thread of the program, unless this has ended or was left meanwhile."""
    with suppress(frida.InvalidOperationError):
        script.post(message)
