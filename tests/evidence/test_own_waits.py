"""Calls wait for what they need themselves: the set-up of a context, or a kernel's code. Those are no synchronizations
of the program.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ffm.model.device import Action
from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Baseline
from ffm.results.stored import open_results
from ffm.vgpu.paths import sample
from tests.conftest import Ffm
from tests.stage_commands import run_stages

MAKER = "cuDevicePrimaryCtxRetain"
LAUNCH = "cuLaunchKernel"
KERNELS = 2

Check = Callable[[Path], None]


def check_contexts(results: Path) -> None:
    functions = {site.function for site in open_results(results).document.sites}
    assert "cuMemcpyDtoH_v2" in functions
    assert not functions & {MAKER, "private"}
    baseline = results / "baseline.json"
    if baseline.exists():
        assert MAKER not in {call.function for call in read_owned(Baseline, baseline)[0].waits}


def check_launches(results: Path) -> None:
    stored = open_results(results)
    launches = [site for site in stored.document.sites if site.function == LAUNCH]
    assert launches
    for site in launches:
        assert not site.synchronization and site.wait_s == 0 and site.problem_count == 0
    assert stored.work is not None and (stored.work.action == Action.LOAD_AND_ENQUEUE).sum() == KERNELS
    assert stored.document.matching is None or not stored.document.matching.unmatched


@pytest.fixture(
    params=[
        pytest.param(("context.waits = 34\n", check_contexts), id="a context, as often as on an H200"),
        pytest.param(("call.load_kernel = 500\n", check_launches), id="code that is loaded lazily"),
    ]
)
def check(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Let the virtual GPU's calls wait; return what checks the results."""
    settings, checks = request.param
    (tmp_path / "gpu.vgpu").write_text(settings)
    monkeypatch.setenv("VGPU_CONFIGURATION", str(tmp_path / "gpu.vgpu"))
    found: Check = checks
    return found


def test_such_a_wait_is_no_synchronization(ffm: Ffm, tmp_path: Path, check: Check) -> None:
    results = tmp_path / "results"
    run_stages(ffm, [sample("gaussian"), "30"], results, {"timeout": "60"})
    check(results)


def test_nor_in_one_run(ffm: Ffm, tmp_path: Path, check: Check) -> None:
    results = tmp_path / "quick"
    done = ffm("run", "--quick", "--results", results, "--", sample("gaussian"), 30)
    assert done.code == 0, done.err
    check(results)
