"""Whose reads of clocks there are in a Python program: the script's, or the interpreter's for its own purposes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ffm.results.folder.paths import ResultsFolder
from ffm.stages.analysis.stage import run_analysis
from ffm.stages.measure import Request
from ffm.stages.registry import MEASURING_STAGES
from ffm.vgpu.paths import library_folder

PROGRAM = Path(__file__).parent / "programs" / "python_locks.py"
STEPS = 3


@pytest.mark.parametrize(("read", "needed"), [("nothing", False), ("time", True), ("datetime", True)])
def test_only_what_the_script_reads_asks_for_waits(
    read: str, needed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The interpreter reads clocks for locks, from more stacks than are told apart."""
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library_folder()))
    folder = ResultsFolder(tmp_path)
    request = Request([sys.executable, str(PROGRAM), read], folder, 120.0)
    for stage in MEASURING_STAGES.values():
        stage(request)
    analysis = run_analysis(folder)
    (wait,) = (site for site in analysis.sites if site.call == "cuCtxSynchronize")
    required = sum(verdict.occurrences for verdict in wait.synchronization if verdict.kind == "required")
    assert (wait.count, required) == (STEPS, STEPS if needed else 0)
    assert bool(analysis.timing) == needed
