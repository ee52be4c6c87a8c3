"""Files are written completely or not at all, through no link, and are readable by the intended users."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from ffm.results.columnar.tables import whole_arrow_file
from ffm.whole_file import fresh_file, named_output, remove_leftovers, whole_file, whole_files, write_whole


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    """The umask alone makes nothing private."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "document.json"
    path.write_bytes(b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert [each.name for each in tmp_path.iterdir()] == ["document.json"]


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")], ids=repr)
def test_an_error_leaves_what_was_there_and_nothing_else(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "document.json"
    path.write_bytes(b"old")
    with pytest.raises(type(error)), whole_file(path) as file:
        file.write(b"half")
        raise error
    assert path.read_bytes() == b"old"
    assert [each.name for each in tmp_path.iterdir()] == ["document.json"]


def test_an_error_names_the_file_that_the_user_knows(tmp_path: Path) -> None:
    with pytest.raises(OSError) as raised:
        write_whole(tmp_path / "nowhere" / "document.json", b"")
    assert raised.value.filename == str(tmp_path / "nowhere" / "document.json")
    assert raised.value.errno == errno.ENOENT


def test_files_that_belong_together_are_replaced_together(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("old")
    with pytest.raises(OSError) as raised, whole_files(tmp_path, "a", "b") as partial:
        write_whole(partial / "a", b"new")
        raise OSError(errno.ENOSPC, "full", str(partial / "b"))
    assert raised.value.errno == errno.ENOSPC and raised.value.filename == str(tmp_path / "b")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a": "old", "b": "old"}
    with whole_files(tmp_path, "a", "b") as partial:
        for name in ("a", "b"):
            write_whole(partial / name, b"new")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"a": "new", "b": "new"}


def test_the_folder_that_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / ".ffm-0123456789abcdef.partial"
    left.mkdir()
    (left / "timeline.arrow").touch()
    remove_leftovers(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_link_is_replaced_and_its_victim_untouched(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "analysis.json"
    victim.write_text("mine")
    link.symlink_to(victim)
    write_whole(link, b"new")
    assert victim.read_text() == "mine"
    assert not link.is_symlink() and link.read_bytes() == b"new"


def test_a_log_goes_through_no_link(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "baseline.log"
    victim.write_text("mine")
    link.symlink_to(victim)
    with fresh_file(link) as log:
        log.write(b"sum 0")
    assert victim.read_text() == "mine"
    assert link.read_bytes() == b"sum 0" and mode(link) == 0o600


def test_documents_are_private_and_what_the_user_names_is_as_the_umask_says(tmp_path: Path) -> None:
    write_whole(tmp_path / "document.json", b"")
    with named_output(tmp_path / "report.html") as file:
        file.write(b"page")
    assert mode(tmp_path / "document.json") == 0o600
    assert mode(tmp_path / "report.html") == 0o644


def test_output_to_a_link_is_refused(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "report.html"
    victim.write_text("mine")
    link.symlink_to(victim)
    with pytest.raises(OSError, match="symbolic link"), named_output(link) as file:
        file.write(b"page")
    assert victim.read_text() == "mine" and link.is_symlink()


def test_output_to_a_device_leaves_the_device() -> None:
    with named_output(Path(os.devnull)) as file:
        file.write(b"page")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    with pytest.raises(OSError) as raised, named_output(Path("/dev/full")) as file:
        file.write(b"page")
    assert (raised.value.filename, raised.value.errno) == ("/dev/full", errno.ENOSPC)


def test_arrow_writes_to_the_file_that_was_opened_and_not_to_what_took_its_name(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    with whole_arrow_file(tmp_path / "t.arrow") as sink:
        (partial,) = tmp_path.glob(".ffm-*")
        partial.unlink()
        partial.symlink_to(victim)
        sink.write(b"columns")
    assert victim.read_text() == "mine"


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".ffm-0123456789abcdef.partial").touch()
    (tmp_path / "notes.partial").touch()
    remove_leftovers(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["notes.partial"]
