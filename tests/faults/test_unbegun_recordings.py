"""Processes that are killed before their recordings begin: they are counted and reported, and the others are kept."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.errors import InstrumentError
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import MAGIC, read_recordings, unbegun_recordings
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Tracing
from ffm.results.documents.notes import UnrecordedProcesses
from ffm.stages.analysis.notes import unrecorded_notes
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "unbegun.cu"
HEADER = constant("FFM_HEADER_BYTES")


@pytest.fixture(scope="module")
def program(build_program: Callable[..., Path]) -> Path:
    return build_program(PROGRAM, "-rdynamic")


def test_a_child_that_was_killed_before_its_recording_began_is_told(ffm: Ffm, program: Path, tmp_path: Path) -> None:
    assert subprocess.run([program], check=False).returncode == 1  # the child is not killed
    for stage in ("baseline", "tracing"):
        done = ffm("stage", stage, "--results", tmp_path, "--timeout", 60, "--", program)
        assert done.code == 0, done.err
        assert "and 1 that ended before they could call the driver" in done.err
    folder = tmp_path / "recordings" / "tracing"
    (left,) = unbegun_recordings(folder)
    assert left.stat().st_size == 0
    document = read_owned(Tracing, tmp_path / "tracing.json")[0]
    assert document.run is not None and document.run.unrecorded == 1
    (kept,) = document.run.processes
    assert [recording.process_id for recording in read_recordings(folder)] == [kept.process_id]
    assert unrecorded_notes([document]) == [UnrecordedProcesses(stage="tracing", processes=1)]


@pytest.mark.parametrize("content", [b"", bytes(4), bytes(HEADER), bytes(8) + b"version and more"], ids=len)
def test_a_file_without_a_header_holds_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "recording-1-0.ffm"
    path.write_bytes(content)
    assert unbegun_recordings(tmp_path) == [path]
    assert read_recordings(tmp_path) == []


@pytest.mark.parametrize("content", [MAGIC, MAGIC[:7], b"no recording", bytes(HEADER) + b"a chunk"], ids=len)
def test_any_other_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "recording-1-0.ffm").write_bytes(content)
    assert unbegun_recordings(tmp_path) == []
    with pytest.raises(InstrumentError, match="Run the stage again"):
        read_recordings(tmp_path)
