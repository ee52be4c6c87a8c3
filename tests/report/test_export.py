"""Exports contain what the results contain, in the shape that other tools read."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import orjson
import pytest

from ffm.model.timeline import Timeline
from ffm.report.formats import export
from ffm.report.formats.export import json_chunks, speedscope
from tests.report.sample_analysis import sample_analysis


def timeline(rows: int) -> Timeline:
    columns: dict[str, Any] = {
        field.name: np.arange(rows, dtype=np.int64) + index for index, field in enumerate(fields(Timeline))
    }
    columns |= {"kind": columns["kind"].astype(np.uint8), "site": columns["site"].astype(np.int32)}
    return Timeline(**columns)


@pytest.mark.parametrize("rows", [0, 1, 7, 8, 9])
def test_the_json_is_one_object_with_every_column_whole(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "CHUNK_ROWS", 4)
    content = orjson.loads(b"".join(json_chunks(sample_analysis(), timeline(rows))))
    assert content["analysis"]["format"] == "ffm.analysis"
    assert content["analysis"]["wall_s"] == 1000.0
    assert list(content["timeline"]) == [field.name for field in fields(Timeline)]
    assert content["timeline"]["duration"] == list(range(2, rows + 2))
    assert {len(column) for column in content["timeline"].values()} == {rows}


def test_speedscope_profiles_weigh_each_stack_in_seconds() -> None:
    content = orjson.loads(speedscope(sample_analysis()))
    frames = content["shared"]["frames"]
    profiles = {profile["name"]: profile for profile in content["profiles"]}
    assert profiles["time in CUDA calls"]["weights"] == [30.5] * 4
    recoverable = profiles["saving, each site alone, by carry"]
    assert recoverable["weights"] == [10.0, 2.5, 0.5]
    assert recoverable["endValue"] == 13.0
    first = [frames[index] for index in recoverable["samples"][0]]
    assert first[0] == {"name": "main", "file": "/src/main.cpp", "line": 146}
    assert first[-1] == {"name": "cudaFree"}
    for profile in content["profiles"]:
        assert len(profile["samples"]) == len(profile["weights"])
        assert max(index for sample in profile["samples"] for index in sample) < len(frames)
