"""The analysis document built from a timeline, and read back."""

from __future__ import annotations

import dataclasses
import os
import shlex
from pathlib import Path

import numpy as np
import orjson
import pytest

from ffm.errors import DocumentError, FfmError
from ffm.model.estimators.carry import carry
from ffm.model.timeline import Kind, Problem, Timeline
from ffm.results.columnar.timeline_file import load_results_timeline, save_timeline
from ffm.results.documents.site import DownloadUse
from ffm.results.stored import Results, open_results, subsequence
from ffm.stages.analysis.findings import SiteDescription
from ffm.stages.analysis.results import analyse, write_results
from tests.results.loop_findings import ITERATIONS, loop_findings, loop_timeline


@pytest.fixture
def results(tmp_path: Path) -> Results:
    write_results(loop_findings(), tmp_path)
    return open_results(tmp_path)


def test_sites_have_places_and_totals(results: Results) -> None:
    site = results.document.sites[2]
    assert (site.call, site.function, site.caller) == ("cudaFree", "cuMemFree_v2", "void step<float>(int)")
    assert (site.file, site.line, site.kind) == ("/home/user/solve.cu", 12, "free")
    assert (site.count, site.problem_count) == (ITERATIONS, ITERATIONS)
    assert (site.total_s, site.wait_s, site.gap_s) == pytest.approx((0.016, 0.012, 0.008))
    # The launch is in the gap of the transfer: 1 ms before it, 1 ms in it, 1 ms after it.
    assert results.document.sites[0].gap_s == pytest.approx(0.012)
    assert results.document.sites[0].bytes == 4096


def test_what_rests_on_equal_bytes_alone_is_told_apart() -> None:
    findings = loop_findings()
    uploads = findings.timeline.kind == Kind.TRANSFER
    found = [
        analyse(dataclasses.replace(findings, equal_bytes=equal))[0].without_equal_bytes
        for equal in (None, uploads, findings.timeline.problem != 0)
    ]
    assert found[0] is None
    kept = dataclasses.replace(
        findings.timeline, problem=np.where(uploads, Problem.NONE, findings.timeline.problem).astype(np.uint8)
    )
    expected = analyse(loop_findings(kept))[0].everything
    assert found[1] is not None and expected is not None
    assert found[1].carry_s == pytest.approx(expected.carry_s)
    assert found[2] is not None and found[2].carry_s == 0


def test_site_benefits_are_those_of_its_rows_alone(results: Results) -> None:
    for index, site in enumerate(results.document.sites):
        alone = carry(results.timeline, results.timeline.site == index)
        assert site.benefit.carry_s == pytest.approx(alone)
    # The second free: its call of 1 ms and its wait of 1 ms, each four times.
    assert results.document.sites[3].benefit.carry_s == pytest.approx(0.008)
    assert results.document.sites[4].benefit.bound_s == 0


def test_copies_that_go_need_no_work_to_absorb_them(tmp_path: Path) -> None:
    """Copies of 1 MiB in 3 ms, of which the call takes 1: all of the wait is the copy."""
    findings = loop_findings()
    findings.sites[0] = SiteDescription(0, "cuMemcpyHtoD_v2", bytes=ITERATIONS << 20)
    findings.sites[1] = SiteDescription(1, "cuMemAlloc_v2", bytes=1 << 40)  # allocated, not moved
    write_results(findings, tmp_path)
    results = open_results(tmp_path)
    assert results.copy_time.tolist() == [3_000_000, 0, 0, 0, 0]
    # Each iteration: calls of 1, 1 and 1 ms; the copy of 2 ms; waits of 3 and 1 ms before 2 and 5 ms of work.
    whole = 4 * (3 + 2 + 2 + 2) / 1000
    assert results.document.sequences[0].benefit.carry_s == pytest.approx(whole)
    assert subsequence(results, 1, 1, 3).seconds == pytest.approx(whole)
    assert subsequence(results, 1, 1, 1).seconds == pytest.approx(4 * (1 + 2) / 1000)


def test_a_download_that_is_not_touched_saves_the_time_in_its_calls_that_is_no_wait() -> None:
    findings = loop_findings()
    size = ITERATIONS << 20
    for touched, share in ((0, 1.0), (size // 4, 0.75), (size, 0.0)):
        use = DownloadUse(occurrences=ITERATIONS, of=ITERATIONS, watch="pages", bytes=size, touched_bytes=touched)
        findings.sites[0] = SiteDescription(0, "cuMemcpyDtoHAsync_v2", bytes=0, download=use)
        analysis, _ = analyse(findings)
        site = analysis.sites[0]
        assert site.download is not None
        assert site.total_s > site.wait_s
        assert site.download.saving_s == pytest.approx(share * (site.total_s - site.wait_s))


def test_points_are_single_call_stacks_most_saved_first(results: Results) -> None:
    points = results.document.points
    assert sorted(point.sites for point in points) == [[0], [2], [3]]
    assert points[0].name.startswith("cuda")
    savings = [point.benefit.carry_s for point in points]
    assert savings == sorted(savings, reverse=True)


def test_folds_join_template_instances_under_their_call(results: Results) -> None:
    folds = {fold.name: fold for fold in results.document.folds}
    assert set(folds) == {"cudaMemcpy", "cudaFree"}
    free = folds["cudaFree"]
    assert (free.sites, free.count) == ([2, 3], 2 * ITERATIONS)
    assert [(part.name, part.sites) for part in free.parts] == [("step<...>", [2, 3])]
    together = carry(results.timeline, np.isin(results.timeline.site, [2, 3]))
    assert free.benefit.carry_s == pytest.approx(together)
    assert free.conditional
    assert not folds["cudaMemcpy"].conditional


def test_the_loop_is_one_sequence(results: Results) -> None:
    (sequence,) = results.document.sequences
    assert [(line.site, line.count) for line in sequence.operations] == [(0, 4), (2, 4), (3, 4)]
    assert sequence.operations[0].problems == ["synchronization", "transfer"]
    assert (sequence.recurrences, sequence.ends_at) == (ITERATIONS, 4)
    # Each iteration: calls of 1, 1 and 1 ms; waits of 2, 3 and 1 ms before 1 + 1 + 1, 2 and 5 ms of work.
    assert sequence.benefit.carry_s == pytest.approx(4 * (3 + 6) / 1000)
    assert sequence.benefit.bound_s == pytest.approx(4 * min(3 + 4 + 2, 3 + 2 + 5) / 1000)


def test_subsequence_answers_by_both_estimators(results: Results) -> None:
    answer = subsequence(results, 1, 2, 3, "bound")
    assert answer.seconds == answer.benefit.bound_s == pytest.approx(4 * min(4 + 2, 2 + 5) / 1000)
    assert answer.benefit.carry_s == pytest.approx(4 * (2 + 4) / 1000)
    assert answer.percent == pytest.approx(100 * answer.seconds / results.document.wall_s)
    assert [operation.site for operation in answer.operations] == [2, 3]
    assert subsequence(results, 1, 2, 3).seconds == answer.benefit.carry_s


def test_a_whole_sequence_as_a_part_saves_the_same(results: Results) -> None:
    answer = subsequence(results, 1, 1, 3)
    assert answer.benefit.carry_s == pytest.approx(results.document.sequences[0].benefit.carry_s)
    assert answer.benefit.bound_s == pytest.approx(results.document.sequences[0].benefit.bound_s)


@pytest.mark.parametrize(("sequence", "start", "end"), [(0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 4)])
def test_a_part_that_does_not_exist_is_refused(results: Results, sequence: int, start: int, end: int) -> None:
    with pytest.raises(FfmError, match="sequence") as error:
        subsequence(results, sequence, start, end)
    assert "\n" not in str(error.value)


def test_sequences_are_numbered_by_what_they_save() -> None:
    table = loop_timeline(2)
    # In the second iteration only the second free is a problem: a sequence that saves less, though found later.
    problem = table.problem.copy()
    problem[[0, 2]] = 0
    analysis, membership = analyse(loop_findings(dataclasses.replace(table, problem=problem)))
    assert [[line.site for line in found.operations] for found in analysis.sequences] == [[0, 2, 3], [3]]
    assert membership.line.tolist() == [-1, -1, -1, 3, -1, 0, -1, 1, 2, -1]


def test_a_program_without_problems_has_nothing_to_list(tmp_path: Path) -> None:
    table = loop_timeline()
    findings = loop_findings(dataclasses.replace(table, problem=np.zeros_like(table.problem)))
    analysis = write_results(findings, tmp_path)
    assert (analysis.points, analysis.folds, analysis.sequences) == ([], [], [])
    with pytest.raises(FfmError, match="there is no sequence 1"):
        subsequence(open_results(tmp_path), 1, 1, 1)


def test_a_timeline_without_rows_is_analysed(tmp_path: Path) -> None:
    empty = loop_timeline(0)
    analysis = write_results(dataclasses.replace(loop_findings(), timeline=empty), tmp_path)
    assert analysis.sites[0].count == 0
    assert len(open_results(tmp_path).timeline) == 0


def test_timeline_survives_its_file(tmp_path: Path) -> None:
    table = loop_timeline()
    _, membership = analyse(loop_findings(table))
    save_timeline(table, tmp_path / "t.arrow", membership.line)
    again, line, _ = load_results_timeline(tmp_path / "t.arrow")
    for field in dataclasses.fields(Timeline):
        before, after = getattr(table, field.name), getattr(again, field.name)
        assert before.dtype == after.dtype
        assert (before == after).all()
    assert (line == membership.line).all()
    assert [path.name for path in tmp_path.iterdir()] == ["t.arrow"]


def test_timeline_of_several_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ffm.results.columnar.compressed_tables.BATCH_ROWS", 7)
    save_timeline(loop_timeline(), tmp_path / "t.arrow")
    again, line, _ = load_results_timeline(tmp_path / "t.arrow")
    assert (again.start == loop_timeline().start).all()
    assert (line == -1).all()


def test_times_longer_than_32_bits_survive_a_timeline_s_file(tmp_path: Path) -> None:
    table = loop_timeline()
    duration, start = table.duration.copy(), table.start.copy()
    duration[len(table) // 2] += 1 << 40  # and the calls after it overlap
    start[-1] += 1 << 50
    save_timeline(dataclasses.replace(table, duration=duration, start=start), tmp_path / "t.arrow")
    again, _, _ = load_results_timeline(tmp_path / "t.arrow")
    assert (again.start == start).all()
    assert (again.duration == duration).all()


@pytest.mark.parametrize("damage", ["missing", "truncated", "empty", "other", "version"])
def test_a_damaged_timeline_is_refused_in_one_sentence(results: Results, damage: str) -> None:
    path = results.folder / results.document.timeline
    content = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        os.truncate(path, len(content) * 2 // 3)
    elif damage == "version":
        path.write_bytes(content.replace(b"ffm.timeline", b"ffm.timelinX"))
    else:
        path.write_bytes(b"" if damage == "empty" else b"something else entirely" * 100)
    with pytest.raises(DocumentError, match=r"timeline\.arrow") as error:
        subsequence(results, 1, 1, 1)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("damage", ["missing", "truncated", "version", "shape", "half an interval"])
def test_a_damaged_document_is_refused_in_one_sentence(results: Results, damage: str) -> None:
    path = results.folder / "analysis.json"
    content = orjson.loads(path.read_bytes())
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        os.truncate(path, path.stat().st_size // 2)
    elif damage == "version":
        path.write_bytes(orjson.dumps(content | {"version": 999}))
    elif damage == "half an interval":
        del content["everything"]["high_s"]
        path.write_bytes(orjson.dumps(content))
    else:
        path.write_bytes(orjson.dumps(content | {"sites": 3}))
    with pytest.raises(DocumentError, match=r"analysis\.json") as error:
        open_results(results.folder)
    assert "\n" not in str(error.value)


def test_what_recreates_an_analysis_of_another_version_names_its_folder(results: Results) -> None:
    path = results.folder / "analysis.json"
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"version": 999}))
    with pytest.raises(DocumentError) as error:
        open_results(results.folder)
    assert f"`{shlex.join(['ffm', 'stage', 'analysis', '--results', str(results.folder)])}`" in str(error.value)


def test_the_document_alone_opens_without_its_timeline(results: Results) -> None:
    (results.folder / results.document.timeline).unlink()
    assert open_results(results.folder).document.application == "solve"


def test_a_document_that_may_not_be_read_is_not_said_to_be_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(loop_findings(), tmp_path)

    def refused(path: Path, _most: int) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("ffm.results.documents.files.read_regular", refused)
    with pytest.raises(DocumentError, match=r"Permission denied\. Check that .* you may read it"):
        open_results(tmp_path)
