"""A process that has imported ffm and forks for each command, so that most of the work of a short command is done once.

Run as a program, it reads commands from its standard input, one JSON object a line, and tells the number and then the
wait status of each.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from tests.processes import GRACE

IMPORTED = (
    "asyncio.subprocess",
    "capstone.x86",
    "numba",
    "numpy.ma",
    "ssl",
    "ffm.cli.apply_remedy",
    "ffm.cli.check",
    "ffm.cli.compare",
    "ffm.cli.path",
    "ffm.cli.remedies",
    "ffm.cli.run",
    "ffm.cli.stage",
    "ffm.cli.view",
    "ffm.driver.device_code",
    "ffm.model.transfers",
    "ffm.report.formats.html",
    "ffm.stages.analysis.stage",
    "ffm.stages.quick",
    "ffm.stages.registry",
)
"""What most commands import."""


@dataclass(frozen=True, slots=True)
class Done:
    """A command that has ended, or was ended because it took too long."""

    code: int
    """Exit status, or minus the number of a signal."""
    output: str
    errors: str
    hung: bool


class _Later(ModuleType):
    """Stands for a module until a command uses it: Frida does not work in a fork of the process that imported it."""

    _importing = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        with self._importing:
            if sys.modules[self.__name__] is self:
                del sys.modules[self.__name__]
                self.__dict__.update(vars(importlib.import_module(self.__name__)))
        return getattr(sys.modules[self.__name__], name)


class Server:
    """Runs `ffm` in forks of one process; one command at a time."""

    def __init__(self, scratch: Path, preload: Path | None = None) -> None:
        """Keep what a command prints in the folder `scratch` until it has ended; `preload` a library before ffm."""
        self._output, self._errors = scratch / "output", scratch / "errors"
        self._environment = os.environ if preload is None else {**os.environ, "LD_PRELOAD": str(preload)}
        self._process: subprocess.Popen[bytes] | None = None
        self._running = 0

    def __enter__(self) -> Server:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.server"],
            cwd=Path(__file__).parents[1],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,  # `ended` asks the pipe: a line must not wait in a buffer of this process
            start_new_session=True,  # Ctrl-C at the tests ends commands one by one, and then this
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def run(self, words: list[str], folder: Path, environment: dict[str, str], seconds: float) -> Done:
        """Run a command to its end, or until the time is up or the test is interrupted."""
        self.begin(words, folder, environment)
        try:
            return self.wait(seconds)
        except BaseException:
            self._end()
            raise

    def begin(self, words: list[str], folder: Path, environment: dict[str, str]) -> int:
        """Begin a command, when the one before has been waited for; return its process, which leads a session."""
        assert self._process is not None and self._process.stdin is not None and self._process.stdout is not None
        for file in (self._output, self._errors):
            file.unlink(missing_ok=True)
        command = {
            "words": words,
            "folder": str(folder),
            "environment": environment,
            "output": str(self._output),
            "errors": str(self._errors),
        }
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._running = int(self._process.stdout.readline())
        return self._running

    def wait(self, seconds: float) -> Done:
        """Wait for the command's end; end it when the time is up."""
        hung = not self.ended(seconds)
        if hung:
            self._end()
        assert self._process is not None and self._process.stdout is not None
        status = int(self._process.stdout.readline())
        return Done(os.waitstatus_to_exitcode(status), _text(self._output), _text(self._errors), hung)

    def ended(self, seconds: float = 0) -> bool:
        """Whether the command ends within this time; it must be waited for in any case."""
        assert self._process is not None and self._process.stdout is not None
        return bool(select.select([self._process.stdout], [], [], seconds)[0])

    def _end(self) -> None:
        """End the command and what it measures; by force if it does not listen."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._running, number)
            if self.ended(GRACE):
                return


def _text(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""  # it was killed before


def _serve() -> bool:
    """Fork for each command, and return true in the child; false once there are no more commands."""
    while line := sys.stdin.readline():
        command: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(command)
            return True
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()
    return False


def _become(command: dict[str, Any]) -> None:
    os.setsid()
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    output, errors = (
        os.open(command[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600) for name in ("output", "errors")
    )
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(file, number)
    os.closerange(3, max(output, errors, nothing) + 1)
    sys.argv = ["ffm", *command["words"]]


def _prepare() -> None:
    """Import and read what most commands do."""
    sys.modules["frida"] = _Later("frida")
    for name in IMPORTED:
        importlib.import_module(name)
    assert sys.modules["frida"].__class__ is _Later
    from ffm.driver.catalogue import load_catalogue
    from ffm.instrument.recording.layout import record_type

    load_catalogue()
    record_type("ffm_header")
    gc.freeze()  # a collection in a child would copy all of these pages


if __name__ == "__main__":
    _prepare()
    if _serve():
        runpy.run_module("ffm", run_name="__main__")
