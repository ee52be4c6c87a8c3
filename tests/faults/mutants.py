"""Damaged results, read by every command that reads such files: what came of each.

Run as a program, `python -m tests.faults.mutants FOLDER FIRST COUNT`, it reads the mutants of these seeds one after the
other and prints a line before and after each, so that who watches it knows which one crashed it or never ended.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import re
import resource
import select
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.mutations import change_document, change_table, change_words, damage_bytes, other_file
from tests.processes import run_to_end

SECONDS = 60.0
"""After so long a command hangs: on a busy machine the longest takes a twentieth."""

MEMORY = 6 << 30
"""Bytes of addresses that a command may have beyond what it begins with."""

VIEWS = (
    ("report",),
    ("report", "--html", "page.html"),
    ("sequence", "1"),
    ("subsequence", "1", "3"),
    ("subsequence", "--best", "2"),
    ("fold", "cudaFree"),
    ("site", "1"),
    ("site", "30"),
    ("remedies",),
    ("remedies", "--sarif", "log.sarif"),
    ("export", "-o", "all.json"),
    ("export", "--format", "speedscope", "-o", "all.speedscope"),
    ("export", "--format", "perfetto", "-o", "all.pftrace"),
    ("path",),
)
OF_WAITING = ("gpu-times",)
"""The tables that only views of what a run waits for read."""
VIEWS_OF_WAITING = (
    ("path", "1"),
    ("path", "--if", "1=2x"),
    ("path", "--fixed"),
    ("report", "--html", "page.html"),
    ("export", "--format", "perfetto", "-o", "all.pftrace"),
)
ABSURD = re.compile(r"(?<![\w.)])-\d[\d.,]* ?(s|%|ns)\b|\d{5,}(\.\d+)? ?%|\bnan\b|\binf\b", re.IGNORECASE)
RAW = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

GOOD = ("refused", "shown")
"""What may come of a mutant: a sentence and an exit status, or the answer to what is there now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one mutant."""

    seed: int
    file: str
    change: str
    outcome: str
    """One of `GOOD`, or `traceback`, `crash`, `hang`, `memory`, `absurd`, `raw text`, `edited, but shown`."""
    detail: str

    def __str__(self) -> str:
        return f"{self.outcome}: seed {self.seed}, {self.file}, {self.change}: {self.detail[-1500:]}"


def read_mutants(folder: Path, first: int, count: int, seconds: float = SECONDS) -> Iterator[Outcome]:
    """Read the mutants of `count` seeds from `first` on in a process of their own; in a new one after each crash."""
    seed, end = first, first + count
    while seed < end:
        command = [sys.executable, "-m", "tests.faults.mutants", str(folder), str(seed), str(end - seed)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
            assert reader.stdout is not None
            begun: dict[str, Any] = {}
            while True:
                ready, _, _ = select.select([reader.stdout], [], [], seconds if begun else 10 * seconds)
                line = reader.stdout.readline() if ready else b""
                if not line:
                    break
                told = json.loads(line)
                if "outcome" in told:
                    yield Outcome(**told)
                    begun, seed = {}, told["seed"] + 1
                else:
                    begun = told
            reader.kill()
        if begun:
            how = "crash" if ready else "hang"
            yield Outcome(**begun, outcome=how, detail=f"exit status {reader.wait()}")
            seed = begun["seed"] + 1
        elif seed < end:
            raise RuntimeError(f"the reader of mutants ended before seed {seed}: {reader.wait()}")


def _serve(folder: Path, first: int, count: int, report: io.TextIOBase) -> None:
    """Read mutants and report on each."""
    do_without_symbols(pytest.MonkeyPatch())
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        for seed in range(first, first + count):
            chance = random.Random(seed)
            shutil.rmtree("results", ignore_errors=True)
            shutil.copytree(folder, "results")
            file = chance.choice(sorted(path.relative_to(folder) for path in folder.rglob("*") if _is_read(path)))
            begun = {"seed": seed, "file": str(file), "change": ""}
            report.write(json.dumps(begun) + "\n")
            report.flush()
            change = _mutation(file, chance)(Path("results") / file, chance)
            outcome, detail = _read(file, change, chance)
            report.write(json.dumps(begun | {"change": change, "outcome": outcome, "detail": detail}) + "\n")
            report.flush()


def _is_read(path: Path) -> bool:
    return path.is_file() and path.suffix in (".json", ".arrow", ".ffm", ".txt")


def _mutation(file: Path, chance: random.Random) -> Callable[[Path, random.Random], str]:
    if file.suffix == ".ffm":
        return chance.choice((damage_bytes, change_words, change_words))
    if file.parent.name == "diogenes":
        return chance.choice((damage_bytes, change_document)) if file.suffix == ".json" else damage_bytes
    if file.suffix == ".arrow":
        return chance.choice((damage_bytes, other_file, change_table, change_table, change_table))
    return chance.choice((damage_bytes, other_file, change_document, change_document, change_document))


def _read(file: Path, change: str, chance: random.Random) -> tuple[str, str]:
    """Run what reads a file, and judge it."""
    if file.suffix == ".ffm":
        return _judged(lambda: _read_recordings(file), "", unseen=False)
    if file.parent.name == "diogenes":
        return _judged(
            lambda: _ffm("import", "diogenes", "results/diogenes", "--results", "imported"), "", unseen=False
        )
    if file.stem == "measurement":
        return _judged(lambda: _ffm("report", "--results", "results"), "report", unseen=False)
    if file.stem in OF_WAITING:
        command: tuple[str, ...] = chance.choice(VIEWS_OF_WAITING)
        reads_it = command[:2] == ("path", "1") and file.stem != "gpu-times"
    elif file.stem in ("analysis", "timeline"):
        command = chance.choice(VIEWS)
        reads_it = (
            file.stem == "analysis" or command[0] in ("subsequence", "site") or command[1:3] == ("-o", "all.json")
        )
    else:
        stage = next(name for name in ("baseline", "tracing", "memory", "sync-use") if file.stem.startswith(name))
        command = chance.choice((("export", "--stage", stage, "-o", "all.json"), ("stage", "analysis")))
        reads_it = file.stem != "memory-accesses" or command[0] == "export"
    unseen = reads_it and change.startswith("bytes: ") and not _is_as_before(file)
    return _judged(lambda: _ffm(*command, "--results", "results"), " ".join(command), unseen=unseen)


def _is_as_before(file: Path) -> bool:
    """Whether a mutation left the file as it was, as moving zeros among zeros does."""
    return (Path(sys.argv[1]) / file).read_bytes() == (Path("results") / file).read_bytes()


def _judged(command: Callable[[], tuple[int, str]], words: str, *, unseen: bool) -> tuple[str, str]:
    """Run a command. `unseen`: it would be wrong if it did not see that the file is not as it was written."""
    try:
        status, said = command()
    except MemoryError:
        return "memory", f"{words}: {traceback.format_exc()}"
    except BaseException:
        return "traceback", f"{words}: {traceback.format_exc()}"
    if RAW.search(said):
        return "raw text", f"{words}: {RAW.search(said)}"
    if status:
        return ("refused", said) if said.count("\n") <= 3 else ("traceback", said)
    if unseen:
        return "edited, but shown", words
    found = ABSURD.search(said)
    return ("absurd", f"{words}: {said[max(found.start() - 100, 0) : found.end() + 20]}") if found else ("shown", words)


def _ffm(*words: str) -> tuple[int, str]:
    """Run the command line here; its exit status, and all that it said."""
    from ffm.cli.main import main

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    sys.argv[1:], before = words, sys.argv[1:]
    status = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            try:
                main()
            except SystemExit as ending:
                status = int(ending.code or 0)
    finally:
        sys.argv[1:] = before
    return status, out.buffer.getvalue().decode(errors="replace")


def _read_recordings(file: Path) -> tuple[int, str]:
    """Make the tables of stages 2 and 3 from recordings, as their stages do after the run."""
    from ffm.errors import FfmError, InstrumentError
    from ffm.instrument.recording.reader import read_recordings
    from ffm.results.documents.files import read_owned
    from ffm.results.documents.measured import Memory, Tracing
    from ffm.results.folder.paths import ResultsFolder
    from ffm.stages import memory, tracing
    from ffm.stages.measure import Measurement, Request

    folder = ResultsFolder(Path("results"))
    request = Request(["./program"], folder, None)
    kind: type[Tracing | Memory] = Memory if file.parent.name == "memory" else Tracing
    try:
        run = read_owned(kind, folder.document(file.parent.name))[0].run
        assert run is not None
        recordings = read_recordings(Path("results") / file.parent)
        if not recordings:  # `measure` refuses that, too
            return 1, "no process recorded anything"
        measured = Measurement(run, recordings, {})
        if kind is Tracing:
            tracing.record_tracing(measured, request)
        else:
            memory.record_memory(measured, request)
        read_owned(kind, folder.document(file.parent.name))
    except (InstrumentError, FfmError) as error:
        return 1, str(error)
    return 0, ""


def make_results(folder: Path) -> None:
    """Measure a sample, and add what Diogenes would have written of another program."""
    from ffm.results.folder.paths import ResultsFolder
    from ffm.stages.analysis.stage import run_analysis
    from ffm.vgpu.paths import sample
    from tests.sources.diogenes_records import loop_records

    for stage in ("baseline", "tracing", "memory", "sync-use"):
        command = [sys.executable, "-m", "ffm", "stage", stage, "--results", str(folder), "--", str(sample("als")), "2"]
        run_to_end(command, seconds=SECONDS).check_returncode()
    with pytest.MonkeyPatch.context() as patch:
        do_without_symbols(patch)
        run_analysis(ResultsFolder(folder))
    for unread in ("baseline", "sync-use"):
        shutil.rmtree(folder / "recordings" / unread)
    imported = folder / "diogenes"
    imported.mkdir()
    (imported / "combined_stacks.json").write_text(json.dumps(loop_records()))
    (imported / "ttime.txt").write_text("12.5\n")


def do_without_symbols(patch: pytest.MonkeyPatch) -> None:
    """Name no functions: that reads the program's files, which are not what is damaged here, and takes long."""
    from ffm.instrument.probing.latency import DriverTimes
    from ffm.stages import tracing
    from ffm.stages.analysis import stage
    from ffm.symbols.symbolizer import Symbolizer

    patch.setattr(Symbolizer, "resolve", lambda _, locations: [[] for _ in locations])
    patch.setattr(stage.BufferNames, "names", lambda *_: {})
    patch.setattr(tracing, "compute_capability", lambda _: 0)
    patch.setattr(tracing, "wait_latency", lambda _: DriverTimes(0, "not measured here"))


if __name__ == "__main__":
    _, limit = resource.getrlimit(resource.RLIMIT_AS)
    with Path("/proc/self/statm").open() as _statm:
        _used = int(_statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (_used + MEMORY, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(os.dup(1), "w") as _report:
        _serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), _report)
