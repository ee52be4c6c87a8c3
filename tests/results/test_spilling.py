"""Columns in files instead of in memory: the same result."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ffm.results.memory.spilling import Spilling
from ffm.stages.analysis.results import analyse
from tests.results.loop_findings import loop_timeline
from tests.results.replayed_findings import measured


@dataclass(frozen=True, slots=True)
class Record:
    """Columns and something else."""

    column: NDArray[np.int32]
    short: NDArray[np.int64]
    none: NDArray[np.int64] | None
    number: int


def record() -> Record:
    return Record(np.arange(1000, dtype=np.int32), np.arange(3), None, 7)


def in_file(column: NDArray[np.generic]) -> bool:
    base = column.base
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return isinstance(base, np.memmap)


def test_long_columns_lie_in_files_without_names(tmp_path: Path) -> None:
    moved = Spilling(tmp_path, 10)(record())
    assert in_file(moved.column) and not in_file(moved.short)
    assert type(moved.column) is np.ndarray and moved.column.dtype == np.int32
    assert moved.column.tolist() == list(range(1000)) and (moved.none, moved.number) == (None, 7)
    moved.column[5] = 1  # they can be written
    assert not list(tmp_path.iterdir())


def test_where_the_disk_is_full_they_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ffm.results.memory.spilling.os.posix_fallocate", full)
    given = record()
    assert Spilling(tmp_path, 10)(given).column is given.column
    assert Spilling(tmp_path / "absent", 10)(given).column is given.column


def test_the_analysis_is_the_same_to_the_nanosecond(tmp_path: Path) -> None:
    findings = measured(loop_timeline())
    spilling = Spilling(tmp_path, 1)
    assert findings.work is not None
    moved = dataclasses.replace(findings, timeline=spilling(findings.timeline), work=spilling(findings.work))
    assert in_file(moved.timeline.start)
    analysis, membership = analyse(findings)
    other, other_membership = analyse(moved, None, spilling)
    assert other == analysis
    assert (other_membership.line == membership.line).all()
