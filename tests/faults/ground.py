"""A measured program to try faults on, and what must hold of its results and processes after each of them."""

from __future__ import annotations

import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ffm.errors import DocumentError, InstrumentError
from ffm.instrument.recording.reader import read_recordings
from ffm.results.columnar.tables import read_table
from ffm.results.columnar.timeline_file import load_results_timeline
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.document import Document
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Baseline, Memory, SyncUse, Tracing
from ffm.results.folder.identity import read_latest
from ffm.results.folder.lock import writing_to
from ffm.results.folder.paths import STAGES, ResultsFolder
from ffm.results.stored import open_results
from ffm.vgpu.paths import library_folder
from ffm.whole_file import LEFTOVER
from ffm.workflow import SNAKEFILE
from tests.server import Server

KINDS: dict[str, type[Document]] = {
    "baseline": Baseline,
    "tracing": Tracing,
    "memory": Memory,
    "sync-use": SyncUse,
    "analysis": Analysis,
}

PATIENCE = 90.0
"""Seconds after which a command hangs: what takes one second, on a machine that is busy."""

GRACE = 20.0
"""Seconds for processes to be gone after the command that started them."""

UNWOUND = (signal.SIGINT, signal.SIGTERM)
"""Signals that ffm can act on."""


@dataclass(slots=True)
class Ended:
    """A command that has ended, or was ended since it hung."""

    code: int
    errors: str
    hung: bool


@dataclass(frozen=True, slots=True)
class Forked:
    """A command that the server runs."""

    pid: int


@dataclass(slots=True)
class Ground:
    """A program, and a whole measurement of it that each round begins from."""

    program: Path
    arguments: tuple[str, ...]
    measured: Path
    scratch: Path
    server: Server | None = None
    """Where to fork commands, which saves them the time to import ffm."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each stage takes here."""
    operations: dict[str, int] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls, program: Path, scratch: Path, *, arguments: tuple[str, ...] = ("2",), server: Server | None = None
    ) -> Ground:
        """Measure a program of the virtual GPU's once, without a fault."""
        ground = cls(_stripped(program, scratch), arguments, scratch / "measured", scratch, server)
        for stage in STAGES:
            began = time.monotonic()
            ended = ground.wait(ground.begin(stage, ground.measured, forked=server is not None))
            assert ended.code == 0, ended.errors
            ground.seconds[stage] = time.monotonic() - began
            run = read_owned(KINDS[stage], ground.measured / f"{stage}.json")[0].run
            ground.operations[stage] = 0 if run is None else sum(process.operations for process in run.processes)
        return ground

    def fresh(self) -> Path:
        """A folder with a whole measurement."""
        folder = self.scratch / "results"
        shutil.rmtree(folder, ignore_errors=True)
        return shutil.copytree(self.measured, folder)

    def begin(
        self, stage: str, folder: Path, environment: dict[str, str] | None = None, *, forked: bool = False
    ) -> subprocess.Popen[str] | Forked:
        """Begin a stage on the program, in a new interpreter or in a fork of the server's."""
        command = ["ffm", "stage", stage, "--results", str(folder)]
        if stage != "analysis":
            command += ["--timeout", "60", "--", str(self.program), *self.arguments]
        if forked and self.server is not None:
            return Forked(self.server.begin(command[1:], self.scratch, self._environment(environment)))
        return self._begin(command, environment)

    def begin_workflow(self, by: str, folder: Path) -> subprocess.Popen[str]:
        """Begin all stages anew, by `ffm` or by `snakemake`."""
        program = [str(self.program), *self.arguments]
        settings = ["--config", f"app={shlex.join(program)}", f"results={folder}", "timeout=60"]
        commands = {
            "ffm": ["ffm", "run", "--force", "--results", str(folder), "--timeout", "60", *program],
            "snakemake": [
                "snakemake",
                "--snakefile",
                SNAKEFILE,
                "--cores",
                "1",
                "--quiet",
                "all",
                "--forceall",
                *settings,
            ],
        }
        return self._begin(commands[by], None)

    def _begin(self, command: list[str], environment: dict[str, str] | None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            cwd=self.scratch,
            env=self._environment(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def _environment(self, environment: dict[str, str] | None) -> dict[str, str]:
        temporary = self.scratch / "tmp"
        temporary.mkdir(exist_ok=True)
        return {**(environment or os.environ), "TMPDIR": str(temporary)}

    def wait(self, command: subprocess.Popen[str] | Forked) -> Ended:
        """Wait for the end of a command; end it where it hangs."""
        if isinstance(command, Forked):
            assert self.server is not None
            done = self.server.wait(PATIENCE)
            return Ended(done.code, done.errors, done.hung)
        try:
            _, errors = command.communicate(timeout=PATIENCE)
            return Ended(command.returncode, errors, False)
        except subprocess.TimeoutExpired:
            os.killpg(command.pid, signal.SIGKILL)
            _, errors = command.communicate()
            return Ended(command.returncode, errors, True)

    def processes(self) -> list[int]:
        """Processes that execute the program for this ground, and not for another test."""
        return self._running(lambda entry: (entry / "exe").readlink() == self.program)

    def measuring(self) -> list[int]:
        """Processes that run a stage, or the workflow, for this ground; what a killed one leaves ends by itself.

        Snakemake removes what a failed stage should have written, at its end.
        """
        return self._running(
            lambda entry: any(
                words in (entry / "cmdline").read_bytes() for words in (b"\0ffm\0stage\0", b"\0snakemake\0")
            )
        )

    def _running(self, chosen: Callable[[Path], bool]) -> list[int]:
        found = []
        ours = f"TMPDIR={self.scratch / 'tmp'}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if chosen(entry) and ours in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def outlived(self) -> bool:
        """Whether a process of the program, or one that measures it, is still there after a while; it is ended."""
        end = time.monotonic() + GRACE
        while left := self.processes() + self.measuring():
            if time.monotonic() > end:
                for process in left:
                    os.kill(process, signal.SIGKILL)
                return True
            time.sleep(0.02)
        return False

    def leftovers(self, folder: Path, *, unwound: bool) -> list[str]:
        """Files that should not be there: after an end that ffm noticed none, else none that the next stage leaves."""
        temporary = self.scratch / "tmp"
        found = [path.name for path in temporary.iterdir() if path.name.startswith("ffm-")] if unwound else []
        shutil.rmtree(temporary)
        if not unwound:
            with writing_to(folder, "a test"):
                pass
        return found + [path.name for path in folder.rglob("*") if LEFTOVER.fullmatch(path.name)]

    def lost(self, folder: Path, stage: str | None = None) -> str:
        """What of a folder is half, mixed or missing without a word; empty where all is sound.

        `stage` is one that ended well, whose document must then be there and whole.
        """
        results = ResultsFolder(folder)
        for each in STAGES:
            try:
                document = read_latest(KINDS[each], results, each)
            except DocumentError as error:
                if each == stage or ("does not exist" not in str(error) and ".json is older" not in str(error)):
                    return str(error)
                continue
            try:
                if isinstance(document, Analysis):
                    load_results_timeline(folder / document.timeline)
                else:
                    for name in document.tables:
                        read_table(folder / getattr(document, name))
            except DocumentError as error:
                return str(error)
            run = document.run
            if run is not None and run.status.code != 0:
                continue  # the stage failed, and said so
            if run is None or sum(process.operations for process in run.processes) != self.operations[each]:
                return f"{each}.json is of {run and [process.operations for process in run.processes]} operations"
        try:
            for each in STAGES[:-1]:
                read_recordings(results.recordings(each))
            if results.document("analysis").exists():  # also one that is out of date
                _ = open_results(folder).timeline
        except (InstrumentError, DocumentError) as error:
            return str(error)
        return ""


def _stripped(program: Path, scratch: Path) -> Path:
    """Copy a program without what debuggers read: naming its variables takes most of the processor's time otherwise."""
    for name in ("bin", "lib"):
        (scratch / name).mkdir()
    for library in library_folder().iterdir():
        (scratch / "lib" / library.name).symlink_to(library)
    copy = scratch / "bin" / program.name
    subprocess.run(["strip", "--strip-debug", "-o", copy, program], check=True)
    return copy


def moment(chance: random.Random, seconds: float) -> float:
    """A random moment of a stage, also just after its end."""
    return chance.uniform(0.0, 1.1 * seconds)
