"""Results of somebody else: no file is shown, no command run and no escape sequence printed that they name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec
import orjson
import pytest

from ffm.cli.measured_command import measured_command
from ffm.errors import FfmError
from ffm.plain_text import plain
from ffm.report.source_lines import SourceLines
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import read_owned, write_document
from ffm.results.documents.plain import plain_document
from ffm.results.documents.run import working_directory
from ffm.results.ownership import own_secret
from ffm.results.sealing import sealed, take_seal
from ffm.results.stored import Results, open_results
from tests.cli.command_line import write_small_results
from tests.conftest import Ffm
from tests.measured_run import a_run
from tests.report.sample_analysis import sample_analysis

HOSTILE = "\x1b]0;owned\x07\x9b31mred\r[/x] [bold]\u202e"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return folder


def written(folder: Path, *, own: bool, command: Sequence[str] = ("./solve",)) -> Path:
    """Write the small results, as if measured in the working directory, with or without the signature of this user."""
    write_small_results(folder)
    path = folder / "analysis.json"
    run = a_run(command=list(command), working_directory=working_directory(), wall_s=1000.0)
    analysis = msgspec.structs.replace(read_owned(Analysis, path)[0], run=run, command=list(command))
    write_document(analysis, path, own=own)
    return folder


def test_the_command_of_own_results_is_run_as_it_stands(home: Path, tmp_path: Path) -> None:
    results = open_results(written(tmp_path / "own", own=True))
    assert results.own
    assert measured_command(results, agreed=False) == ["./solve"]


def test_own_results_that_come_back_in_another_folder_run_nothing_of_it(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "own", own=True)
    shutil.copytree(tmp_path / "own", tmp_path / "foreign" / "results")
    monkeypatch.chdir(tmp_path / "foreign")
    results = open_results(Path("results"))
    assert results.own
    with pytest.raises(FfmError, match=r"was measured in another folder.*\n  \./solve\n.*--yes"):
        measured_command(results, agreed=False)
    assert measured_command(results, agreed=True) == ["./solve"]


@pytest.mark.parametrize(
    ("command", "anywhere"),
    [
        (("/bin/solve",), True),
        (("/bin/solve", "20", "-1.5", "/data/a b\nc"), True),
        (("/bin/sh", "solve"), False),
        (("/bin/python", "-m", "/solve"), False),
        (("solve", "20"), False),
    ],
)
def test_a_command_that_depends_on_no_folder_runs_in_each(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], anywhere: bool
) -> None:
    results = open_results(written(tmp_path / "own", own=True, command=command))
    assert measured_command(results, agreed=False) == list(command)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with nullcontext() if anywhere else pytest.raises(FfmError, match="another folder"):
        assert measured_command(results, agreed=False) == list(command)


@pytest.mark.parametrize("why", ["not signed", "another user", "no home"])
def test_the_command_of_foreign_results_is_shown_and_not_run(home: Path, tmp_path: Path, why: str) -> None:
    folder = written(tmp_path / "foreign", own=why != "not signed")
    if why == "another user":
        (home / ".local/state/ffm/secret").write_bytes(os.urandom(32))
    elif why == "no home":
        (home / ".local").rename(home / "moved")
        (home / ".local").write_text("a file where a folder should be")
    results = open_results(folder)
    with pytest.raises(FfmError, match=r"not signed as a measurement of yours.*\n  \./solve\n.*--yes"):
        measured_command(results, agreed=False)
    assert measured_command(results, agreed=True) == ["./solve"]


def test_apply_remedy_runs_no_foreign_command_without_asking(home: Path, tmp_path: Path, ffm: Ffm) -> None:
    done = ffm("apply-remedy", "--all", "--results", written(tmp_path / "foreign", own=False))
    assert done.code == 1
    assert "not signed as a measurement of yours" in done.err
    assert done.err.count("\n") == 3


@pytest.mark.parametrize("checksum", ["as it was", "made anew"])
@pytest.mark.parametrize("field", ["command", "run"])
def test_an_edited_document_is_no_signed_one(home: Path, tmp_path: Path, field: str, checksum: str) -> None:
    path = written(tmp_path / "own", own=True) / "analysis.json"
    content = orjson.loads(path.read_bytes())
    if field == "command":
        content["command"] = ["/bin/id"]
    else:
        content["run"]["working_directory"] = str(tmp_path)
    signature = content["signature"]
    if checksum == "made anew":
        head = {name: content.pop(name) for name in ("format", "version")}
        take_seal(content)
        blank = sealed(head, content, None)
        path.write_bytes(blank.replace(b'"signature": "' + b"0" * 64, b'"signature": "' + signature.encode()))
        assert not open_results(path.parent).own
    else:
        path.write_bytes(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        with pytest.raises(FfmError, match="was edited or truncated"):
            open_results(path.parent)


@pytest.mark.parametrize("what", ["readable by others", "a link", "in a folder for all"])
def test_a_secret_that_others_may_know_is_none(home: Path, what: str) -> None:
    assert own_secret() is None
    secret = own_secret(make=True)
    assert secret is not None
    assert own_secret() == secret
    file = home / ".local/state/ffm/secret"
    assert file.stat().st_mode & 0o777 == 0o600
    if what == "readable by others":
        file.chmod(0o644)
    elif what == "a link":
        file.rename(home / "elsewhere")
        file.symlink_to(home / "elsewhere")
    else:
        file.parent.chmod(0o777)
    assert own_secret() is None


def test_source_lines_come_from_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / ".ssh").mkdir()
    for place in (work / "src" / "a.cu", work / ".ssh" / "id", tmp_path / "outside.cu"):
        place.write_text("one\n  two\n")
    (work / "link.cu").symlink_to(tmp_path / "outside.cu")
    monkeypatch.chdir(work)
    lines = SourceLines()
    assert lines.line(str(work / "src" / "a.cu"), 2) == lines.line("src/a.cu", 2) == "two"
    assert lines.line("src/a.cu", 3) == ""
    for forbidden in ("../outside.cu", str(tmp_path / "outside.cu"), "link.cu", ".ssh/id", "/etc/passwd", "src"):
        assert lines.line(forbidden, 1) == ""
    assert SourceLines(own=True).line(str(tmp_path / "outside.cu"), 2) == "two"


def test_source_lines_come_from_regular_files_of_some_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as large:
        large.truncate(1 << 40)
    (tmp_path / "endless").symlink_to("/dev/zero")
    monkeypatch.chdir(tmp_path)
    for own in (False, True):
        lines = SourceLines(own=own)
        assert [lines.line(name, 1) for name in ("pipe", "large", "endless", "no\0name")] == [""] * 4


@pytest.mark.parametrize("command", ["report", "remedies", "fold", "site", "sequence", "page", "sarif", "export"])
def test_no_control_character_of_a_document_is_written(tmp_path: Path, ffm: Ffm, command: str) -> None:
    analysis = sample_analysis()
    renamed = msgspec.to_builtins(analysis) | {"application": HOSTILE, "command": ["./app", HOSTILE]}
    for site in renamed["sites"]:
        site.update(caller=HOSTILE, file=f"/src/{HOSTILE}.cu", buffer=HOSTILE)
    for stack in renamed["stacks"]:
        for frame in stack["frames"]:
            frame.update(function=HOSTILE)
    write_small_results(tmp_path)
    write_document(msgspec.convert(renamed, Analysis), tmp_path / "analysis.json")
    words = {
        "fold": ("fold", "cudaFree"),
        "site": ("site", "1"),
        "page": ("report", "--html", "page"),
        "sarif": ("remedies", "--sarif", "sarif"),
        "export": ("export", "--format", "speedscope", "-o", "export"),
    }
    done = ffm(*words.get(command, (command,)), "--results", ".", folder=tmp_path)
    assert done.code == 0, done.err
    file = tmp_path / command
    shown = done.out + done.err + (file.read_text() if file.exists() else "")
    assert not any(letter in shown for letter in "\x1b\x07\x9b\r\u202e")
    assert "x1b" in shown


def test_plain_text_keeps_what_can_be_printed() -> None:
    assert plain("größe<T>(π)") == "größe<T>(π)"
    assert plain("a\nb\x85\u2028") == r"a\nb\x85\u2028"
    analysis = sample_analysis()
    assert plain_document(analysis) is analysis


def test_a_document_that_is_a_pipe_or_endless_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "analysis.json")
    with pytest.raises(FfmError, match="not a regular file"):
        open_results(tmp_path)
    (tmp_path / "analysis.json").unlink()
    (tmp_path / "analysis.json").symlink_to("/dev/zero")
    with pytest.raises(FfmError, match="not a regular file"):
        read_owned(Analysis, tmp_path / "analysis.json")


def test_results_keep_the_command_word_for_word(tmp_path: Path) -> None:
    analysis = msgspec.structs.replace(sample_analysis(), command=["./app", HOSTILE])
    results = Results(tmp_path, analysis)
    assert results.command == ["./app", HOSTILE]
    assert results.document.command == ["./app", plain(HOSTILE)]
