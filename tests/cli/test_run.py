"""`ffm run`: what it shows, what it refuses, and one run from the program to the report. About 15 s in all."""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from ffm.cli.run import measure
from ffm.cli.running import workflow
from ffm.cli.running.run_screen import RunScreen, shown
from ffm.cli.running.stage_events import VARIABLE, EventReader, EventSink, StageEvent
from ffm.errors import FfmError
from ffm.results.stored import open_results
from ffm.vgpu.paths import sample
from tests.cli.command_line import CommandLine, write_small_results
from tests.conftest import Ffm

PATIENCE = 60.0
"""Seconds for what takes one on an idle machine."""


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name the program to measure: `ffm run ./program ARGUMENTS`"),
        (["./nosuch", "--force"], "The program ./nosuch does not exist"),
        (["--", "./nosuch", "--results"], "The program ./nosuch does not exist"),
        (["./data"], "chmod +x ./data"),
        (["--sample", "nosuch"], "there is no sample nosuch: the samples are als,"),
        (["--configfile", "nosuch.yaml"], "nosuch.yaml cannot be read"),
        (["--configfile", "data"], "data is not YAML"),
        (["--configfile", "list.yaml"], "list.yaml contains no settings"),
        (["--configfile", "quote.yaml"], "cannot be split into words"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_sentence(
    command_line: CommandLine, tmp_path: Path, arguments: list[str], said: str
) -> None:
    (tmp_path / "data").write_text("a: b: c")
    (tmp_path / "list.yaml").write_text("- app")
    (tmp_path / "quote.yaml").write_text("app: ./it's")
    answer = command_line("run", *arguments)
    assert answer.status == 1
    (line,) = answer.errors.splitlines()
    assert said in line
    assert not (tmp_path / "results").exists()


def test_a_folder_that_cannot_be_written_is_refused(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and allowed(path, mode))
    answer = command_line("run", "/bin/true")
    assert answer.status == 1
    assert "cannot be written" in answer.errors and "change to another one" in answer.errors


def test_results_that_cannot_be_stored_are_refused_before_anything_runs(command_line: CommandLine) -> None:
    answer = command_line("run", "--results", "/proc/results", "/bin/true")
    assert answer.status == 1
    (line,) = answer.errors.splitlines()
    assert "/proc/results cannot be written" in line and "--results" in line
    answer = command_line("run", "--results", "/proc/self", "/bin/true")  # exists, and nobody may write there
    assert answer.status == 1
    (line,) = answer.errors.splitlines()
    assert "The results folder /proc/self may not be written" in line and "--results" in line


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("completed", [False, True])
def test_an_interruption_says_how_to_go_on_once_a_stage_is_complete(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, completed: bool, force: bool
) -> None:
    monkeypatch.chdir(tmp_path)

    def interrupted(settings: dict[str, object], *, force: bool, tell: Callable[[list[StageEvent]], None]) -> None:
        tell([StageEvent("baseline", 1.0), *([StageEvent("baseline", 2.0, True)] if completed else [])])
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "run_workflow", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        measure({"app": "/bin/true"}, force)
    notes = " ".join(getattr(raised.value, "__notes__", []))
    assert ("the same command goes on from there" in notes) == completed
    assert ("without --force" in notes) == (completed and force)


def test_a_stage_that_fails_after_others_says_that_these_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)

    def failing(settings: dict[str, object], *, force: bool, tell: Callable[[list[StageEvent]], None]) -> None:
        if force:
            tell([StageEvent("baseline", 1.0), StageEvent("baseline", 2.0, True)])
        raise FfmError("the disk is full.")

    monkeypatch.setattr(workflow, "run_workflow", failing)
    with pytest.raises(FfmError, match=r"^the disk is full\.$"):
        measure({"app": "/bin/true"}, force=False)
    with pytest.raises(FfmError, match="is kept: run the same command without --force to go on from there, unless"):
        measure({"app": "/bin/true"}, force=True)


@pytest.mark.parametrize("same", [False, True])
def test_results_of_another_command_are_replaced_with_notice(
    same: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs."""
    write_small_results(tmp_path)
    before = shlex.join(open_results(tmp_path).document.command)

    def failing(settings: dict[str, object], *, force: bool, tell: Callable[[list[StageEvent]], None]) -> None:
        raise FfmError(capsys.readouterr().err)

    monkeypatch.setattr(workflow, "run_workflow", failing)
    monkeypatch.setattr("ffm.instrument.session.program.resolve_program", lambda _: Path("/bin/true"))
    with pytest.raises(FfmError) as raised:
        measure({"app": before if same else f"{before} 7", "results": str(tmp_path)}, force=False)
    assert (f"it replaces that of `{before}` in {tmp_path}" in str(raised.value)) == (not same)


def test_a_sample_is_measured_and_then_not_again(ffm: Ffm, tmp_path: Path) -> None:
    program = os.path.relpath(sample("als"), tmp_path)
    first = ffm("run", "--timeout", 60, program, 1, folder=tmp_path)
    assert first.code == 0, first.err
    told = first.err.splitlines()
    if "went into compiling" in told[-1]:  # the code of the analysis, on a new machine
        told.pop()
    assert [line.split(":")[0] for line in told] == [
        "stage 1 baseline",
        "stage 2 tracing",
        "stage 3 memory",
        "stage 4 sync use",
        "stage 5 analysis",
    ]
    assert "All problems together" in first.out and "ffm remedies" in first.out
    again = ffm("run", "--timeout", 60, program, 1, folder=tmp_path)
    assert again.code == 0, again.err
    assert "Nothing has changed since" in again.err and "--force" in again.err
    assert again.out == first.out
    portion = ffm("run", "--timeout", 60, "--window", "0..60", program, 1, folder=tmp_path)
    assert portion.code == 0, portion.err
    assert [line.split(":")[0] for line in portion.err.splitlines()][:2] == ["stage 2 tracing", "stage 3 memory"]
    assert "Only a portion of the run was measured" in portion.out
    whole = ffm("run", "--timeout", 60, program, 1, folder=tmp_path)
    assert "stage 2 tracing" in whole.err and "Only a portion" not in whole.out
    (tmp_path / "results" / "als" / "analysis.json").unlink()
    shared = ffm("run", "--timeout", 60, "--scheduler", "nowhere://x", program, 1, folder=tmp_path)
    assert shared.code == 1
    (line,) = shared.err.splitlines()
    assert "scheduler" in line and ("nowhere://x" in line or "ffm[distributed]" in line)


@pytest.mark.parametrize("home", [os.environ.get("HOME", "/"), "/proc"], ids=["", "read-only home"])
def test_a_stage_that_fails_is_told_once_in_its_own_sentence(
    ffm: Ffm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    finished = ffm("run", "--", "/bin/true", "--results", folder=tmp_path)
    assert finished.code == 1
    (line,) = finished.err.splitlines()
    assert line.startswith("ffm: /bin/true ran to its end without loading a CUDA driver")
    assert finished.out == ""


def _runs(words: list[str]) -> bool:
    """Whether a process runs this command."""
    wanted = "\0".join(words).encode() + b"\0"
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == wanted:
                return True
        except OSError:
            continue
    return False


def _until(condition: bool, started: float) -> bool:
    time.sleep(0.05)
    return not condition and time.monotonic() < started + PATIENCE


@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "interrupted."), (signal.SIGTERM, "ended by SIGTERM.")])
def test_an_interruption_ends_the_program_and_is_told_once(tmp_path: Path, number: int, said: str) -> None:
    program = ["/bin/sleep", f"600.{os.getpid()}{int(number)}"]
    ffm = subprocess.Popen(
        [sys.executable, "-m", "ffm", "run", *program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        started = time.monotonic()
        while _until(_runs(program) or ffm.poll() is not None, started):
            pass
        assert _runs(program)
        ffm.send_signal(number)
        out, errors = ffm.communicate(timeout=PATIENCE)
        assert ffm.returncode == 128 + number
        (line,) = errors.strip().splitlines()
        assert line.startswith(f"ffm: {said}") and "in the baseline run" in line
        assert out == ""
    finally:
        ffm.terminate()
    while _until(not _runs(program), started):
        pass
    assert not _runs(program)


def test_events_come_in_order_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "events"
    reader = EventReader(file)
    monkeypatch.setenv(VARIABLE, str(file))
    sink = EventSink("memory")
    assert VARIABLE not in os.environ, "the measured program would inherit it"
    assert reader.news() == []
    sink.begin()
    with file.open("ab") as half:
        half.write(b'{"stage":"memory","at":2.0,"en')
    (began,) = reader.news()
    assert (began.stage, began.ended) == ("memory", False)
    with file.open("ab") as rest:
        rest.write(b'ded":true,"summary":"ran","wall_s":1.5}\n')
    assert reader.news() == [StageEvent("memory", 2.0, True, "ran", 1.5)]


def test_a_stage_tells_what_it_is_doing() -> None:
    screen = RunScreen("measuring app", {"analysis": 9.0}, clock=lambda: 5.0)
    screen.take(StageEvent("analysis", 1.0))
    screen.take(StageEvent("analysis", 2.0, step="replaying fix 3 of 10"))
    assert any("5 analysis" in line and "4 s  replaying fix 3 of 10" in line for line in _drawn(screen, 80))
    screen.take(StageEvent("analysis", 5.0, True, "2 call sites with problems"))
    assert any("4.0 s  2 call sites" in line for line in _drawn(screen, 80))


def test_a_stage_that_took_long_says_why_below_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    screen = RunScreen("measuring app", {}, clock=lambda: 5.0)
    with shown(screen) as take:
        take([StageEvent("analysis", 1.0), StageEvent("analysis", 9.0, True, "2 sites", remark="It compiled.")])
        take([StageEvent("memory", 1.0), StageEvent("memory", 2.0, True, "ran")])
    first, second, third = capsys.readouterr().err.splitlines()
    assert first.startswith("stage 5 analysis: 2 sites") and second == "It compiled."
    assert third.startswith("stage 3 memory: ran")


def test_stages_that_have_nothing_to_do_are_kept() -> None:
    screen = RunScreen("measuring app", {"baseline": 4.0, "tracing": 4.0, "memory": 9.0}, clock=lambda: 5.0)
    screen.take(StageEvent("memory", 1.0))
    lines = [" ".join(line.split()) for line in _drawn(screen, 80)]
    assert lines[1:3] == ["1 baseline kept from before", "2 tracing kept from before"]
    assert not any("kept" in line for line in lines[3:])


def test_nothing_is_told_where_nobody_asks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    EventSink("memory").end("ran", 1.0)
    assert list(tmp_path.iterdir()) == []


def _drawn(screen: RunScreen, width: int) -> list[str]:
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(screen)
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_what_a_stage_will_take_follows_the_bare_run_or_the_last_measurement() -> None:
    fresh = RunScreen("measuring app", {}, clock=lambda: 10.0)
    assert fresh.expected("memory") is None
    fresh.take(StageEvent("baseline", 0.0))
    fresh.take(StageEvent("baseline", 5.0, True, "ran 4.00 s", 4.0))
    assert fresh.expected("memory") == pytest.approx(4.0 * 1.12 / 1.01 + 1.0)
    assert fresh.expected("analysis") is None
    known = RunScreen("measuring app", {"baseline": 4.0, "memory": 30.0}, clock=lambda: 10.0)
    assert known.expected("memory") == 30.0


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_progress_has_a_line_for_each_stage_at_any_width(width: int) -> None:
    now = 0.0
    screen = RunScreen("measuring app " + "x" * 200, {}, clock=lambda: now)
    assert screen.ran_nothing
    screen.take(StageEvent("baseline", 1.0))
    screen.take(StageEvent("baseline", 4.0, True, "ran 2.00 s, 17 operations; 3 driver functions waited 1.00 s", 2.0))
    screen.take(StageEvent("tracing", 4.0))
    now = 65.0
    lines = _drawn(screen, width)
    assert not screen.ran_nothing
    assert len(lines) == 6 and max(map(len, lines)) <= width
    assert lines[0].startswith("1:05  measuring app")
    assert lines[1].startswith("✓ 1 baseline    3.0 s  ran 2.00 s")
    assert "2 tracing" in lines[2] and "61 s" in lines[2] and "about 3 s" in lines[2]
    assert lines[3].strip().startswith("3 memory") and "about 3 s" in lines[3]
    assert screen.line("baseline").startswith("stage 1 baseline: ran 2.00 s, 17 operations")
