"""Drivers whose internal wait function is unknown: what cannot be seen to wait must not seem to save time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import orjson
import pytest

from ffm.cache import remember
from ffm.driver.analysis import cache_folder
from ffm.instrument.probing.remembered import _memory_of_failure
from ffm.instrument.probing.wait_search import find_wait_function
from ffm.vgpu.paths import library_folder
from tests.conftest import Ffm

PROGRAM = Path(__file__).parent / "programs" / "freed.cu"


@pytest.fixture
def unknown_wait_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the search for the wait function have failed a moment ago."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = find_wait_function(library_folder() / "libcuda.so.1", limit=0.001)
    assert found.offset is None
    remember(cache_folder(), _memory_of_failure(found.identity), msgspec.json.encode(found))


@pytest.mark.usefixtures("unknown_wait_function")
def test_a_wait_before_a_free_saves_nothing_although_the_free_is_not_seen_to_wait(
    ffm: Ffm, build_program: Callable[[Path], Path], tmp_path: Path
) -> None:
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--", build_program(PROGRAM), folder=tmp_path)
        assert "(only synchronizations are seen to wait)" in done.err
    assert ffm("stage", "analysis", "--", "freed", folder=tmp_path).code == 0
    report = orjson.loads(ffm("report", "--all", "--json", folder=tmp_path).out)
    assert [row["name"] for row in report["folds"]["rows"]] == ["cudaDeviceSynchronize"]
    assert report["folds"]["rows"][0]["saving"]["replay_s"] < 0.2 * report["wall_s"]
    (note,) = [note for note in report["notes"] if "wait function" in note]
    assert "did not finish within" in note
