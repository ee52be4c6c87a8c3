"""The stored timeline holds what happened on the GPU, and refuses what no run can have."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from ffm.errors import DocumentError
from ffm.model.device import DeviceWork, Encounters, LockWaits, Role
from ffm.results.columnar.timeline_file import load_results_timeline, save_timeline
from tests.results.replayed_findings import several_ranks


def test_what_happens_on_the_gpu_survives_its_file(tmp_path: Path) -> None:
    findings = several_ranks(2)
    assert findings.work is not None
    told = dataclasses.replace(
        findings.work,
        stream_device=np.array([0, 3], np.int32),
        independent=np.array([False, True]),
        delayed=np.array([5, -1], np.int64),
        direction=np.arange(len(findings.timeline), dtype=np.uint8) % 4,
        asked=np.arange(len(findings.timeline), dtype=np.int32) % 3 - 1,
        locks=LockWaits(*(np.array([one], np.int64) for one in (0, 20, 1, 40))),
        encounters=Encounters(np.array([0, 0]), np.array([1, 2]), np.array([Role.COMES, Role.WAITS], np.uint8)),
    )
    findings = dataclasses.replace(findings, work=told)
    assert findings.work is not None
    save_timeline(findings.timeline, tmp_path / "t.arrow", None, findings.work)
    timeline, _, work = load_results_timeline(tmp_path / "t.arrow")
    assert work is not None
    assert (timeline.start == findings.timeline.start).all()
    for field in dataclasses.fields(DeviceWork):
        before, after = getattr(findings.work, field.name), getattr(work, field.name)
        if isinstance(before, LockWaits | Encounters):
            before, after = (dataclasses.astuple(one) for one in (before, after))
        assert np.array_equal(before, after), field.name


@pytest.mark.parametrize(("column", "value"), [("number", 2), ("number", -1), ("row", 10**6), ("row", -1), ("role", 8)])
def test_encounters_that_no_run_can_have_are_refused(tmp_path: Path, column: str, value: int) -> None:
    findings = several_ranks(2)
    assert findings.work is not None
    encounters = Encounters(np.array([0, 0]), np.array([1, 2]), np.array([Role.COMES, Role.WAITS], np.int64))
    getattr(encounters, column)[1] = value
    work = dataclasses.replace(findings.work, encounters=encounters)
    save_timeline(findings.timeline, tmp_path / "t.arrow", None, work)
    with pytest.raises(DocumentError):
        load_results_timeline(tmp_path / "t.arrow")
