"""Children that are the first to load the driver: they do as they do without the instruments, and are measured."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.instrument.recording.reader import read_recordings
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "children.cu"
LIMIT_S = 60


@pytest.mark.parametrize("way", ["fork", "generations", "thread", "unseen", "execute"])
def test_a_child_may_be_the_first_to_load_the_driver(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, way: str
) -> None:
    done = ffm("stage", "baseline", "--results", tmp_path, "--timeout", LIMIT_S, "--", build_program(PROGRAM), way)
    assert (done.code, done.err.count("\n")) == (0, 1), done.err
    assert any(len(one.operations) for one in read_recordings(tmp_path / "recordings" / "baseline"))


def test_a_program_may_close_descriptors_that_it_has_not_opened(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    program = build_program(PROGRAM)
    for stage in ("baseline", "tracing"):
        done = ffm("stage", stage, "--results", tmp_path, "--timeout", LIMIT_S, "--", program, "close")
        assert done.code == 0, done.err
    (recording,) = read_recordings(tmp_path / "recordings" / "tracing")
    assert len(recording.operations) and recording.lost == 0


@pytest.mark.parametrize("watch", ["pages", "trace"])
def test_a_forked_child_is_watched(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path, watch: str) -> None:
    program = build_program(PROGRAM)
    for stage in (["baseline"], ["tracing"], ["memory", "--watch", watch]):
        done = ffm("stage", *stage, "--results", tmp_path, "--timeout", LIMIT_S, "--", program, "fork")
        assert done.code == 0, done.err
