"""What a run waited for, as stage 5 says it and the views find it again."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest

from ffm.errors import DocumentError, FfmError
from ffm.report.waiting.path import path_view
from ffm.results.columnar.gpu_times_file import GPU_TIMES_FILE
from ffm.results.stored import Results, open_results
from ffm.results.waiting.run_path import run_path
from ffm.results.waiting.summary import summarize
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.results import write_results
from tests.model.whole_path import find_path
from tests.results.replayed_findings import measured, several_ranks


def written(folder: Path, findings: Findings) -> Results:
    write_results(findings, folder)
    return open_results(folder)


@pytest.mark.parametrize("findings", [measured(), several_ranks(3)], ids=["one", "ranks"])
def test_the_views_find_what_stage_5_said(tmp_path: Path, findings: Findings) -> None:
    results = written(tmp_path, findings)
    found, document = run_path(results), results.document
    replay = results.estimates.replay
    assert replay is not None and results.work is not None and document.path is not None
    whole = find_path(results.timeline, results.work, found.graph, replay.threads, found.meetings)
    assert np.array_equal(whole.end, found.path.end) and np.array_equal(whole.part, found.path.part)
    assert document.path == found.shares(document.path.agreed)
    assert document.waiting is not None
    again = summarize(document, found, results.estimates)
    assert document.waiting == msgspec.structs.replace(again, guessed=document.waiting.guessed)
    assert path_view(results).length_s == pytest.approx(found.path.length / 1e9)


def test_the_view_reads_no_timeline(tmp_path: Path) -> None:
    results = written(tmp_path, measured())
    for file in tmp_path.glob("*.arrow"):
        file.unlink()
    assert path_view(results).regions


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_gpu_times_that_are_not_the_run_s_are_refused_in_one_sentence(tmp_path: Path, damage: str) -> None:
    results, path = written(tmp_path / "one", measured()), tmp_path / "one" / GPU_TIMES_FILE
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        written(tmp_path / "other", several_ranks(3))
        path.write_bytes((tmp_path / "other" / GPU_TIMES_FILE).read_bytes())
    with pytest.raises(DocumentError, match=GPU_TIMES_FILE) as refused:
        run_path(results)
    assert "\n" not in str(refused.value)


def test_totals_have_no_path(tmp_path: Path) -> None:
    results = written(tmp_path, dataclasses.replace(measured(), work=None))
    with pytest.raises(FfmError, match="totals per call stack"):
        path_view(results)
