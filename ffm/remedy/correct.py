"""Runs a program uncorrected and corrected, alternately, and compares the outcomes."""

from __future__ import annotations

import hashlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ffm.driver.catalogue import load_catalogue
from ffm.driver.search import NOT_FOUND, find_driver
from ffm.driver.vocabulary import Effect, Kind
from ffm.errors import ProgramError
from ffm.instrument.session.instruments import Instruments, Library
from ffm.instrument.session.program import Ending, ending_of, resolve_program
from ffm.instrument.session.program_end import await_end
from ffm.instrument.session.runner import run_instrumented
from ffm.instrument.session.standard_input import standard_input
from ffm.remedy.layout import Counted, constant, guarded_functions, read_counters
from ffm.remedy.plan_file import MEMORY_BYTES, Planned, awaits_clocks, closes_host_memory, delivers_late, write_plan

LIBRARY = Library("libffm_remedy.so", "ffm_remedy")

HEAP = "libffm_heap.so"
"""Gives large heap blocks pages of their own and marks them, so that they can be closed while downloads are pending
(`native/preload/marks.c`).
"""

SEEN_KINDS = frozenset(Kind) - {Kind.ENTRY}
"""The kinds of functions that the library sees: nearly all, because unseen work or queries could reveal a correction.
"""


class _NoWaitFunction:
    """The library needs no wait function."""

    offset: int | None = None
    offsets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Needs:
    """What corrections need besides hooks in the driver."""

    closing: bool
    """Guards over functions of the C library."""
    late: bool
    """A heap whose large blocks have pages of their own."""
    clocks: bool
    """To be notified of reads of clocks."""


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One run: its seconds, how it ended, and digests of the files it wrote. A file that it did not write has no
    digest.
    """

    wall_s: float
    ending: Ending
    output: bytes
    files: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Comparison:
    """All runs. `each_counted` holds the processes of each corrected run, in the plan's order of sites. `twin` holds
    the runs of a version corrected by hand, if there is one.
    """

    bare: list[ProgramRun]
    corrected: list[ProgramRun]
    planned: list[Planned]
    each_counted: list[list[Counted]]
    twin: list[ProgramRun]
    stdin: Path | None = None
    """The file that each run read from its standard input."""

    @property
    def counted(self) -> list[Counted]:
        """The processes of the last corrected run."""
        return self.each_counted[-1]

    @property
    def bare_s(self) -> float:
        """Median seconds of the uncorrected program."""
        return statistics.median(run.wall_s for run in self.bare)

    @property
    def corrected_s(self) -> float:
        """Median seconds of the corrected program."""
        return statistics.median(run.wall_s for run in self.corrected)

    @property
    def twin_s(self) -> float | None:
        """Median seconds of the version corrected by hand; None if there is none."""
        return statistics.median(run.wall_s for run in self.twin) if self.twin else None


def compare_runs(
    command: list[str],
    planned: list[Planned],
    *,
    runs: int,
    files: list[Path],
    memory_bytes: int = MEMORY_BYTES,
    twin: list[str] | None = None,
    timeout_s: float | None = None,
    stdin: Path | None = None,
    require: Callable[[ProgramRun], None] = lambda run: None,
    require_corrected: Callable[[Sequence[Counted]], None] = lambda counted: None,
    progress: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Alternate bare and corrected runs of the command, `runs` times each, and likewise of `twin` if it is given.
    Each run reads the file `stdin` from its start, or nothing.

    `require` is called with each bare run, and `require_corrected` with what each process of the first corrected run
    counted. They raise where there is nothing to compare.

    Raises:
        InstrumentError: The program cannot be started or instrumented.
        ProgramError: It cannot be executed, or loads no driver.
    """
    with tempfile.TemporaryDirectory(prefix="ffm-remedy-") as scratch:
        folder = Path(scratch)
        ordered = write_plan(planned, folder / "plan", memory_bytes)
        needs = _Needs(
            closing=any(closes_host_memory(site) for site in planned),
            late=any(delivers_late(site) for site in planned),
            clocks=any(awaits_clocks(site) for site in planned),
        )
        bare: list[ProgramRun] = []
        corrected: list[ProgramRun] = []
        by_hand: list[ProgramRun] = []
        each_counted: list[list[Counted]] = []
        for turn in range(runs):
            progress(f"run {turn + 1} of {runs}: uncorrected")
            bare.append(run_bare(command, folder, files, timeout_s, stdin))
            require(bare[-1])
            progress(f"run {turn + 1} of {runs}: corrected")
            run, counted = _run_corrected(command, folder, turn, files, timeout_s, needs, stdin)
            corrected.append(run)
            each_counted.append(counted)
            if turn == 0:
                require_corrected(counted)
            if twin is not None:
                progress(f"run {turn + 1} of {runs}: corrected by hand")
                by_hand.append(run_bare(twin, folder, [], timeout_s, stdin))
    return Comparison(bare, corrected, ordered, each_counted, by_hand, stdin)


FileState = tuple[int, int, int] | None
"""Inode, time of the last change in nanoseconds, and size; None if the file does not exist."""


def _states(files: list[Path]) -> list[FileState]:
    found = [path.stat() if path.is_file() else None for path in files]
    return [None if status is None else (status.st_ino, status.st_ctime_ns, status.st_size) for status in found]


def _digests(files: list[Path], before: list[FileState]) -> dict[str, str | None]:
    """Return digests of the files that changed during the run; an earlier run may have left the others."""
    return {
        str(path): None if now is None or now == then else hashlib.sha256(path.read_bytes()).hexdigest()
        for path, now, then in zip(files, _states(files), before, strict=True)
    }


def run_bare(
    command: list[str], folder: Path, files: list[Path], timeout_s: float | None, stdin: Path | None = None
) -> ProgramRun:
    """Run a program as it is, until it ends or the time is up; its output goes to a file in the folder. It reads the
    file `stdin`, or nothing.

    Raises:
        ProgramError: It cannot be run.
    """
    output, before = folder / "output", _states(files)
    try:
        resolved = resolve_program(command)
        with output.open("wb") as sink, standard_input(stdin) as source:
            began = time.monotonic()
            program = subprocess.Popen(
                command,
                executable=resolved,
                stdin=source,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            end = await_end(program, timeout_s)
            wall_s = time.monotonic() - began
    except OSError as error:
        raise ProgramError(f"{command[0]} cannot be run: {error.strerror}. Try it without ffm.") from error
    ending = ending_of(end.status, timed_out=end.timed_out)
    return ProgramRun(wall_s, ending, output.read_bytes(), _digests(files, before))


def _run_corrected(
    command: list[str],
    folder: Path,
    turn: int,
    files: list[Path],
    timeout_s: float | None,
    needs: _Needs,
    stdin: Path | None,
) -> tuple[ProgramRun, list[Counted]]:
    output, counts, before = folder / "output", folder / f"counts-{turn}", _states(files)
    counts.mkdir()
    # What a program requests of the driver's private interface may write memory unseen.
    catalogue = load_catalogue()
    seen = (*catalogue.of_kind(*SEEN_KINDS), *catalogue.with_effect(Effect.HAND_OUT_CALLS))
    functions = [function.name for function in seen]
    instruments = Instruments(
        counts,
        functions,
        constant("FFM_FOLLOW_CLOCKS") if needs.clocks else 0,
        folder / "plan",
        lambda driver: _NoWaitFunction(),
        LIBRARY,
        tuple(catalogue.extra.values()),
        guarded_functions() if needs.closing else (),
        preloaded=(HEAP,) if needs.late else (),
    )
    outcome = run_instrumented(command, instruments, output=output, timeout_s=timeout_s, stdin=stdin)
    counted = [read_counters(path) for path in sorted(counts.glob("remedy-*.ffm"))]
    if not counted and outcome.ending.sound:
        raise ProgramError(
            f"{command[0]} ran to its end without loading a CUDA driver (libcuda.so). "
            + ("There is nothing to correct." if find_driver() else f"There is none on this machine: {NOT_FOUND}.")
        )
    return ProgramRun(outcome.wall_s, outcome.ending, output.read_bytes(), _digests(files, before)), counted
