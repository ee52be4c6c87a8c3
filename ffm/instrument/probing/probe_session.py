"""A running probe (`ffm.instrument.probing.probe`) with a time limit."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import frida

import ffm
from ffm.errors import CauseError
from ffm.instrument.probing.blocked_stack import Stack, read_stack
from ffm.instrument.session.frida_home import local_device

_AGENT = Path(__file__).with_name("probe_agent.js")


class ProbeSessionError(CauseError):
    """The probe could not do its work; the message is one sentence that says why."""


@dataclass(frozen=True, slots=True)
class Count:
    """How often a thread entered and left a hooked function."""

    entered: int
    left: int
    order: int
    """Rank of the last entry among all entries."""


def importing_environment() -> dict[str, str]:
    """Return our environment for a child that imports this very package, installed or not."""
    root = str(Path(ffm.__file__).parents[1])
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class ProbeSession:
    """Starts the probe, reads its stacks, counts what its threads enter, and ends it.

    Every method raises `ProbeSessionError` if it cannot continue. Do not use it in a Frida callback: it calls Frida and
    waits.
    """

    def __init__(self, driver: Path, limit: float) -> None:
        """Prepare a probe of the driver at `driver` that lives for at most `limit` seconds."""
        self._driver = driver
        self._limit = limit
        self._expired = threading.Event()
        self._cancellable = frida.Cancellable()  # type: ignore[no-untyped-call]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__
        self._base = 0
        self.occupied_by = ""
        self.calls: list[str] = []
        """Public calls that the probe can make."""
        self.contexts = False
        """Whether it can create contexts that wait in other ways."""

    def __enter__(self) -> Self:
        self._process = self._start()
        self._timer = threading.Timer(self._limit, self._expire)
        self._timer.daemon = True
        self._timer.start()
        try:
            greeting = self._answer()
            if not Path(greeting["path"]).samefile(self._driver):
                raise ProbeSessionError(f"the probe loaded {greeting['path']} instead of {self._driver}")
            self._base = int(greeting["base"])
            self.occupied_by = greeting["occupied_by"]
            self.calls = greeting["calls"]
            self.contexts = greeting["contexts"]
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def enter_context(self, flags: int) -> None:
        """Continue in a new context with the scheduling `flags`."""
        self.calls = list(self._do(do="context", flags=flags)["calls"])

    def block(self, call: str) -> int:
        """Make a thread of the probe block in the public call `call`; return the thread's id."""
        return int(self._do(do="block", call=call)["thread"])

    def release(self) -> bool:
        """Let the blocked call return; return whether it was still blocked."""
        return bool(self._do(do="release")["blocked"])

    def launch(self) -> int:
        """Make a thread of the probe enqueue work on a busy GPU; return the thread's id."""
        return int(self._do(do="launch")["thread"])

    def stack(self, thread: int) -> Stack | None:
        """Return the current stack of `thread` with addresses as offsets, or None if the thread has ended."""
        try:
            found = read_stack(self._process.pid, thread)
        except OSError as error:
            raise self._failure(f"the probe's stacks cannot be read: {error}") from error
        if found is None:
            return None
        return Stack(found.program_counter - self._base, found.words - self._base)

    def attach(self) -> None:
        """Attach Frida, which `hook` and `counts` need."""
        self._agent = self._attach()

    def hook(self, offsets: list[int]) -> list[str | None]:
        """Count entries of the functions at `offsets`; return for each None, or why it cannot be hooked."""
        return list(self._frida("hook", hex(self._base), offsets))

    def counts(self, thread: int, offsets: list[int]) -> list[Count]:
        """Return what `thread` has entered and left so far, for each of `offsets`."""
        return [Count(*row) for row in self._frida("counts", thread, offsets)]

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ffm.instrument.probing.probe", str(self._driver)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            env=importing_environment(),
        )

    def _attach(self) -> Any:
        try:
            with self._cancellable:
                session = local_device().attach(self._process.pid)
                script = session.create_script(_AGENT.read_text(), name="probe", runtime="qjs")
                script.load()
        except frida.PermissionDeniedError as error:
            raise ProbeSessionError(
                f"Frida may not attach to a process of this user ({error}); allow ptrace "
                "(kernel.yama.ptrace_scope at most 1, the capability SYS_PTRACE in a container)"
            ) from error
        except Exception as error:
            raise self._failure(f"Frida could not attach to the probe: {error}") from error
        return script.exports_sync

    def _frida(self, name: str, *arguments: Any) -> Any:
        try:
            with self._cancellable:
                return getattr(self._agent, name)(*arguments)
        except Exception as error:
            raise self._failure(f"the probe ended or lost Frida while it was watched: {error}") from error

    def _do(self, **command: str | int) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._failure("the probe ended unexpectedly") from error
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failure("the probe ended unexpectedly")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ProbeSessionError(answer["error"])
        return answer

    def _failure(self, sentence: str) -> ProbeSessionError:
        if self._expired.is_set():
            return ProbeSessionError(f"the probe did not finish within {self._limit:.0f} s")
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        return ProbeSessionError(f"{sentence} ({said[-1]})" if said else sentence)

    def _expire(self) -> None:
        self._expired.set()
        self._cancellable.cancel()
        self._process.kill()

    def _end(self) -> None:
        self._timer.cancel()
        # Killing it also detaches Frida.
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                # A command that was not read is still in the pipe's buffer.
                with contextlib.suppress(OSError):
                    stream.close()
