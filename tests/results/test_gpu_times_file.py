"""The GPU's times, inferred by stage 5 and read by the views that replay the run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from ffm.errors import DocumentError
from ffm.model.gpu_times import inference
from ffm.model.gpu_times.inference import infer_gpu_times
from ffm.model.gpu_times.timelines import GpuTimes, Inference
from ffm.results.columnar.gpu_times_file import GPU_TIMES_FILE
from ffm.results.documents.files import write_document
from ffm.results.stored import Results, open_results
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.results import write_results
from tests.results.replayed_findings import measured, several_ranks

QUICK = dataclasses.replace(measured(), origin="quick", presumed=True)
RUNS = pytest.mark.parametrize("findings", [measured(), several_ranks(3), QUICK], ids=["one", "ranks", "quick"])


def written(folder: Path, findings: Findings) -> Results:
    write_results(findings, folder)
    return open_results(folder)


def assert_same(mine: Inference, theirs: Inference) -> None:
    for field in dataclasses.fields(Inference):
        if field.name == "guessed":
            continue  # a part of the document
        one, other = getattr(mine, field.name), getattr(theirs, field.name)
        if isinstance(one, GpuTimes):
            for column in dataclasses.fields(GpuTimes):
                assert np.array_equal(getattr(one, column.name), getattr(other, column.name)), (field, column)
        else:
            assert np.array_equal(one, other), field


@RUNS
def test_the_views_read_what_would_be_inferred_again(tmp_path: Path, findings: Findings) -> None:
    results = written(tmp_path, findings)
    assert results.work is not None and results.estimates.replay is not None
    proves = results.document.proves
    least = results.document.wait_latency.least
    again = infer_gpu_times(results.timeline, results.work, least, anything_late=not proves)
    assert_same(results.estimates.replay.inference, again)
    if not proves:
        assert results.presumed.replay is not None
        assert_same(results.presumed.replay.inference, again.if_anything_is_late())


@RUNS
def test_no_view_infers_them(tmp_path: Path, findings: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
    write_results(findings, tmp_path)

    def refused(*_: object) -> None:
        raise AssertionError("inferred again")

    monkeypatch.setattr(inference, "fit_times", refused)
    results = open_results(tmp_path)
    rows = np.ones(len(results.timeline), bool)
    assert results.estimates.of_rows(rows).replay_s is not None
    assert results.corrected.of_rows(rows).replay_s is not None
    if not results.document.proves:
        assert results.presumed.of_rows(rows).replay_s is not None


@pytest.mark.parametrize("damage", ["missing", "cut", "of another run", "of a run that proves more"])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path, damage: str) -> None:
    results, path = written(tmp_path / "one", QUICK), tmp_path / "one" / GPU_TIMES_FILE
    if damage == "missing":
        path.unlink()
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:100])
    else:
        other = several_ranks(3) if damage == "of another run" else measured()
        written(tmp_path / "other", other)
        path.write_bytes((tmp_path / "other" / GPU_TIMES_FILE).read_bytes())
        document = write_document(results.document, tmp_path / "one" / "analysis.json")
        results = Results(tmp_path / "one", document)
    with pytest.raises(DocumentError, match=GPU_TIMES_FILE) as refused:
        assert results.estimates.replay
    assert "\n" not in str(refused.value)


def test_impossible_times_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes add them up."""

    def wrong(*arguments: object, **options: bool) -> Inference:
        found = infer_gpu_times(*arguments, **options)  # type: ignore[arg-type]
        found.slow.gpu[0] = -1
        return found

    with monkeypatch.context() as patch:
        patch.setattr("ffm.stages.analysis.results.infer_gpu_times", wrong)
        results = written(tmp_path, measured())
    with pytest.raises(DocumentError, match="not as this ffm writes it"):
        assert results.estimates.replay


def test_totals_have_none(tmp_path: Path) -> None:
    results = written(tmp_path, dataclasses.replace(measured(), work=None))
    assert results.estimates.replay is None and (tmp_path / GPU_TIMES_FILE).exists()
