"""Of a run that is too long to try what faster regions would save, columns are freed before the path is found."""

from __future__ import annotations

import weakref
from pathlib import Path

import msgspec
import pytest

from ffm.results.documents.analysis import Analysis
from ffm.results.waiting.run_path import RunPath
from ffm.results.waiting.summary import summarize
from ffm.stages.analysis import results as steps
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.results import write_results
from tests.results.replayed_findings import measured, several_ranks


def without_trials(analysis: Analysis) -> Analysis:
    """Return the analysis without what differs: what faster regions would save, and digests."""
    assert analysis.waiting is not None
    regions = [msgspec.structs.replace(region, tenth_s=None, gone_s=None) for region in analysis.waiting.regions]
    return msgspec.structs.replace(analysis, waiting=msgspec.structs.replace(analysis.waiting, regions=regions))


@pytest.mark.parametrize("findings", [measured(), several_ranks(3)], ids=["one", "ranks"])
def test_a_long_run_gets_the_same_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, findings: Findings) -> None:
    short = write_results(findings, tmp_path / "short")
    monkeypatch.setattr(steps, "LONGEST_TRIED", 0)
    long = write_results(findings, tmp_path / "long")
    assert without_trials(long) == without_trials(short)
    for table in (tmp_path / "short").glob("*.arrow"):
        assert (tmp_path / "long" / table.name).read_bytes() == table.read_bytes()


def test_what_only_estimates_need_is_gone_by_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "LONGEST_TRIED", 0)
    alive: list[bool] = []

    def summarize_then(analysis: Analysis, run: RunPath, estimates: None) -> object:
        alive.extend(column() is not None for column in columns)
        return summarize(analysis, run, estimates)

    monkeypatch.setattr(steps, "summarize", summarize_then)
    findings = [measured()]
    work = findings[0].work
    assert work is not None
    columns = [weakref.ref(findings[0].timeline.first_use), weakref.ref(work.copied)]
    del work
    write_results(findings.pop(), tmp_path)
    assert alive == [False, False]
