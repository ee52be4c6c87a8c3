"""Programs with very many distinct call stacks, and with deep ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ffm.instrument.recording.reader import Recording, read_recordings
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "stacks.cu"
LEVELS, DESCENTS = 14, 3000


@pytest.fixture(scope="module")
def recording(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("stacks")
    done = ffm("stage", "baseline", "--results", folder, "--", build_program(PROGRAM), LEVELS, DESCENTS)
    assert done.code == 0, done.err
    (recording,) = read_recordings(folder / "recordings" / "baseline")
    return recording


def test_every_operation_has_its_whole_stack(recording: Recording) -> None:
    stacks = recording.operations["stack"][: 2**LEVELS]
    depths = np.array([len(stack.frames) for stack in recording.stacks])
    assert len(recording.operations) == 2**LEVELS + DESCENTS + 1
    assert len(set(stacks.tolist())) == 2**LEVELS
    assert (depths[stacks] > LEVELS).all()


def test_recursion_is_folded(recording: Recording) -> None:
    """Frames from inside to outside; a cycle that repeats more often than that is one place, however deep."""
    assert len(recording.stacks) < 2**LEVELS + DESCENTS / 10


def test_what_stands_around_recursion_is_kept(ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path) -> None:
    done = ffm("stage", "baseline", "--results", tmp_path, "--", build_program(PROGRAM), 0, 150)
    assert done.code == 0, done.err
    (recording,) = read_recordings(tmp_path / "recordings" / "baseline")
    deepest = max(recording.stacks, key=lambda stack: len(stack.frames)).frames
    shallow = [recording.stacks[number].frames for number in recording.operations["stack"][:4].tolist()]
    last = recording.stacks[int(recording.operations["stack"][-1])].frames
    assert len(last) < len(deepest)
    assert last[0] == shallow[2][0] and last[-3:] == shallow[2][-3:]
