"""The entry point: what it lists, how it fails, what it imports."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import click
import pytest

from ffm import __version__
from ffm.cli import main as entry_point
from ffm.cli.system_errors import sentence
from ffm.errors import FfmError
from tests.cli.command_line import CommandLine, write_small_results


@pytest.fixture
def ffm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    return CommandLine(monkeypatch, capsys)


def _add(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make `ffm report` raise an error."""

    @click.command()
    def fail() -> None:
        raise error

    monkeypatch.setattr(entry_point.CommandsOnDemand, "get_command", lambda *_: fail)


def test_version(ffm: CommandLine) -> None:
    assert __version__ in ffm("--version").output


def test_every_listed_command_exists_and_has_help() -> None:
    for name in entry_point.COMMANDS:
        command = entry_point.commands.get_command(click.Context(entry_point.commands), name)
        assert command is not None and command.help, name


def test_help_imports_no_command_and_no_library_but_click() -> None:
    program = (
        "import sys\nsys.argv = ['ffm', '--help']\nfrom ffm.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'numba', 'msgspec', 'rich', 'frida', 'pyarrow', 'ffm.cli.view'} & set(sys.modules)))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    ).stdout
    assert "subsequence" in printed
    assert printed.splitlines()[-1] == "[]"


def test_the_analysis_imports_nothing_that_measures() -> None:
    """Frida takes a fifth of a second and 30 MB."""
    program = "import sys, ffm.stages.analysis.stage\nprint('frida' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    ).stdout
    assert printed == "False\n"


def test_screens_of_stored_results_import_no_model() -> None:
    """Most answer from the document alone. NumPy and the model take longer to import than that does to read."""
    modules = [f"ffm.report.terminal.{name}" for name in ("overview", "sequence", "site", "fold", "best")]
    program = (
        f"import sys, ffm.cli.view, ffm.results.stored, {', '.join(modules)}\n"
        "print(sorted(name for name in sys.modules if name.startswith(('numpy', 'ffm.model.device'))))"
    )
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2]
    ).stdout
    assert printed == "[]\n"


def test_an_error_of_ours_is_one_sentence(ffm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    _add(monkeypatch, FfmError("the disk is full."))
    answer = ffm("report")
    assert (answer.status, answer.errors) == (1, "ffm: the disk is full.\n")


def test_an_error_of_the_program_itself_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _add(monkeypatch, ZeroDivisionError())
    monkeypatch.setattr(sys, "argv", ["ffm", "report"])
    with pytest.raises(ZeroDivisionError):
        entry_point.main()


def test_an_interruption_is_clean(ffm: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    _add(monkeypatch, KeyboardInterrupt())
    answer = ffm("report")
    assert answer.status == 130
    assert answer.errors.strip() == "ffm: interrupted."


def test_wrong_usage_is_explained(ffm: CommandLine) -> None:
    answer = ffm("nonsense")
    assert answer.status == 2
    assert "No such command 'nonsense'" in answer.errors
    assert "Did you mean" not in answer.errors


def test_a_misspelled_command_is_recognised(ffm: CommandLine) -> None:
    assert "Did you mean `ffm apply-remedy`?" in ffm("aply-remedy").errors


def test_a_program_in_place_of_a_command_is_explained(ffm: CommandLine, tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.touch()
    assert f"ffm run {sys.executable}\n" in ffm(sys.executable).errors
    assert f"ffm run python {script}\n" in ffm(str(script)).errors


@pytest.mark.parametrize("command", [["report"], ["report", "--json"], ["export"], ["--help"]])
def test_a_reader_that_leaves_early_causes_no_complaint(tmp_path: Path, command: list[str]) -> None:
    write_small_results(tmp_path)
    where = [] if command == ["--help"] else ["--results", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "ffm", *command, *where],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait() == 1


@pytest.mark.parametrize("stage", ["tracing", "memory", "sync-use"])
def test_a_stage_before_its_time_leaves_no_folder_behind(
    ffm: CommandLine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stage: str
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = ffm("stage", stage, "--", "./solve")
    assert answer.status == 1
    assert "does not exist. Run `ffm stage " in answer.errors and "first" in answer.errors
    assert not (tmp_path / "results").exists()


def test_stages_are_listed_in_their_order_with_whole_lines(ffm: CommandLine) -> None:
    shown = ffm("stage", "--help").output.partition("Commands:")[2]
    names = ["baseline", "tracing", "memory", "sync-use", "analysis"]
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and line.split()[0] in names]
    assert listed == names
    assert "..." not in shown


def test_a_current_folder_that_is_gone_is_named_as_the_reason(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" -m ffm run /bin/true', "sh", gone, sys.executable],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("ffm: "))
    assert "current folder does not exist any more. Change to another one" in line


def test_a_missing_folder_for_temporary_files_is_named_as_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "missing")])
    with pytest.raises(FileNotFoundError) as refused:
        tempfile.gettempdir()
    assert sentence(refused.value) == ("no folder for temporary files can be written. Set TMPDIR to one that can.")


def test_characters_that_the_terminal_lacks_are_shown_by_their_codes(tmp_path: Path) -> None:
    write_small_results(tmp_path / "prögram")
    command = [sys.executable, "-m", "ffm", "report", "--results", tmp_path / "prögram"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run(command, capture_output=True, check=True, env=environment)
    assert b"--results" in shown.stdout and rb"pr\xf6gram" in shown.stdout and not shown.stderr
