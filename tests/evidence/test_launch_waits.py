"""The first launch of a kernel waits if its code is loaded lazily. That is part of the call, and no synchronization."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.model.device import Action
from ffm.results.stored import open_results
from ffm.vgpu.paths import sample
from tests.conftest import Ffm
from tests.stage_commands import run_stages

LAUNCH = "cuLaunchKernel"
KERNELS = 2


@pytest.fixture(autouse=True)
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpu.vgpu").write_text("call.load_kernel = 500\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(tmp_path / "gpu.vgpu"))


def test_a_launch_that_loads_its_kernel_is_no_synchronization(ffm: Ffm, tmp_path: Path) -> None:
    results = tmp_path / "results"
    run_stages(ffm, [sample("gaussian"), "30"], results, {"timeout": "60"})
    _has_no_waits_of_it(results)


def test_nor_in_one_run(ffm: Ffm, tmp_path: Path) -> None:
    results = tmp_path / "quick"
    done = ffm("run", "--quick", "--results", results, "--", sample("gaussian"), 30)
    assert done.code == 0, done.err
    _has_no_waits_of_it(results)


def _has_no_waits_of_it(results: Path) -> None:
    stored = open_results(results)
    launches = [site for site in stored.document.sites if site.function == LAUNCH]
    assert launches
    for site in launches:
        assert not site.synchronization and site.wait_s == 0 and site.problem_count == 0
    assert stored.work is not None and (stored.work.action == Action.LOAD_AND_ENQUEUE).sum() == KERNELS
    assert stored.document.matching is None or not stored.document.matching.unmatched
