"""Creating a context waits for its own set-up, which is not a synchronization of the program."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.results.documents.files import read_owned
from ffm.results.documents.measured import Baseline
from ffm.results.stored import open_results
from ffm.vgpu.paths import sample
from tests.conftest import Ffm
from tests.stage_commands import run_stages

MAKER = "cuDevicePrimaryCtxRetain"


@pytest.fixture(autouse=True)
def waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it wait as often as for an H200."""
    (tmp_path / "gpu.vgpu").write_text("context.waits = 34\n")
    monkeypatch.setenv("VGPU_CONFIGURATION", str(tmp_path / "gpu.vgpu"))


def test_the_first_call_of_a_program_is_no_synchronization(ffm: Ffm, tmp_path: Path) -> None:
    results = tmp_path / "results"
    run_stages(ffm, [sample("gaussian"), "30"], results, {"timeout": "60"})
    assert MAKER not in {call.function for call in read_owned(Baseline, results / "baseline.json")[0].waits}
    _has_no_waits_of_it(results)


def test_nor_in_one_run(ffm: Ffm, tmp_path: Path) -> None:
    results = tmp_path / "quick"
    done = ffm("run", "--quick", "--results", results, "--", sample("gaussian"), 30)
    assert done.code == 0, done.err
    _has_no_waits_of_it(results)


def _has_no_waits_of_it(results: Path) -> None:
    functions = {site.function for site in open_results(results).document.sites}
    assert "cuMemcpyDtoH_v2" in functions
    assert not functions & {MAKER, "private"}
