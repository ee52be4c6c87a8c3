"""What the creation of a context waits for is its own set-up, and no synchronization of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.results.stored import open_results
from ffm.vgpu.paths import sample
from tests.conftest import Ffm


def test_the_first_call_of_a_program_is_no_unnecessary_synchronization(
    ffm: Ffm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gpu.vgpu").write_text("context.waits = 1\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(tmp_path / "gpu.vgpu"))
    results = tmp_path / "results"
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        done = ffm("stage", stage, "--results", results, "--timeout", 60, "--", sample("gaussian"), 30)
        assert done.code == 0, done.err
    assert ffm("stage", "analysis", "--results", results).code == 0
    document = open_results(results).document
    (made,) = (site for site in document.sites if site.function == "cuDevicePrimaryCtxRetain")
    assert (made.wait_s, made.problem_count) == (0, 0)
