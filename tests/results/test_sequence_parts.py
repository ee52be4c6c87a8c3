"""Parts of sequences that stage 5 estimates for long runs: the same as those that viewing commands estimate."""

from __future__ import annotations

from pathlib import Path

import pytest

from ffm.results.stored import TIMELINE_FILE, open_results, subsequence
from ffm.stages.analysis.results import write_results
from tests.results.loop_findings import loop_timeline
from tests.results.replayed_findings import measured


def test_parts_of_long_runs_are_in_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short, long = tmp_path / "short", tmp_path / "long"
    write_results(measured(loop_timeline()), short)
    monkeypatch.setattr("ffm.stages.analysis.sequence_parts.LONG_ROWS", 1)
    write_results(measured(loop_timeline()), long)
    (long / TIMELINE_FILE).unlink()  # is not read
    wanted, stored = open_results(short), open_results(long)
    lines = len(wanted.document.sequences[0].operations)
    assert lines > 1 and not wanted.document.sequences[0].parts
    for start in range(1, lines + 1):
        for end in range(start, lines + 1):
            assert subsequence(stored, 1, start, end) == subsequence(wanted, 1, start, end)


def test_parts_are_in_the_document_where_stage_5_has_compiled_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ffm.stages.analysis.sequence_parts.PLAIN_ROWS", len(loop_timeline()) - 1)
    write_results(measured(loop_timeline()), tmp_path)
    assert all(sequence.parts for sequence in open_results(tmp_path).document.sequences)


def test_no_more_parts_are_estimated_than_take_little_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ffm.stages.analysis.sequence_parts.LONG_ROWS", 1)
    monkeypatch.setattr("ffm.stages.analysis.sequence_parts.ROWS", 0)
    monkeypatch.setattr("ffm.stages.analysis.sequence_parts.LEAST", 1)
    write_results(measured(loop_timeline()), tmp_path)
    assert not any(sequence.parts for sequence in open_results(tmp_path).document.sequences)
