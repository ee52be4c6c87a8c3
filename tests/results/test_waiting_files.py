"""What a run waited for, written by stage 5 and read by the views."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec
import numpy as np
import pytest
from test_results_replay import measured, several_ranks
from whole_path import find_path

from ffm.errors import DocumentError, FfmError
from ffm.report.waiting.path import path_view
from ffm.results.columnar.tables import read_table, write_table
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.files import write_document
from ffm.results.stored import Results, open_results
from ffm.results.waiting.files import GRAPH_FILE, MEETINGS_FILE, STRETCHES_FILE
from ffm.results.waiting.run_path import likely_path, run_path
from ffm.results.waiting.summary import summarize
from ffm.stages.analysis.findings import Findings
from ffm.stages.analysis.results import write_results

FILES = (GRAPH_FILE, STRETCHES_FILE, MEETINGS_FILE)


def written(folder: Path, findings: Findings) -> Results:
    write_results(findings, folder)
    return open_results(folder)


@pytest.mark.parametrize("findings", [measured(), several_ranks(3)], ids=["one", "ranks"])
def test_the_views_read_what_would_be_found_again(tmp_path: Path, findings: Findings) -> None:
    results = written(tmp_path, findings)
    replay = results.estimates.replay
    assert replay is not None and results.work is not None
    found = likely_path(results.timeline, results.work, replay.inference, replay.threads)
    read = run_path(results)
    for mine, theirs in ((found.graph, read.graph), (found.meetings, read.meetings), (found.stretches, read.stretches)):
        for field in dataclasses.fields(mine):
            assert np.array_equal(getattr(mine, field.name), getattr(theirs, field.name)), field.name
    whole = find_path(results.timeline, results.work, found.graph, replay.threads, found.meetings)
    assert np.array_equal(whole.end, read.path.end) and np.array_equal(whole.part, read.path.part)
    assert results.document.waiting is not None
    again = summarize(results.document, found, results.estimates)
    assert results.document.waiting == msgspec.structs.replace(again, guessed=results.document.waiting.guessed)
    assert path_view(results).length_s == pytest.approx(read.path.length / 1e9)


def test_the_view_reads_no_timeline(tmp_path: Path) -> None:
    results = written(tmp_path, measured())
    for file in tmp_path.glob("*.arrow"):
        file.unlink()
    assert path_view(results).regions


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", ["missing", "cut"])
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path, file: str, damage: str) -> None:
    results, path = written(tmp_path, measured()), tmp_path / file
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DocumentError, match=file) as refused:
        run_path(results)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("file", "column", "value"),
    [
        (GRAPH_FILE, "gpu_after", 0),  # work that comes after itself
        (GRAPH_FILE, "cause", 10_000),
        (GRAPH_FILE, "gpu_reason", 9),
        (GRAPH_FILE, "waited", -1),
        (STRETCHES_FILE, "begin", 0),  # a hole
        (STRETCHES_FILE, "thread", 7),
        (STRETCHES_FILE, "kind", 3),
    ],
)
def test_what_no_run_can_be_is_refused(tmp_path: Path, file: str, column: str, value: int) -> None:
    """Passes follow these columns: one that leads in a circle would never end."""
    results, path = written(tmp_path, measured()), tmp_path / file
    columns = {name: each.copy() for name, each in read_table(path).items()}
    where = len(columns[column]) // 2 if column != "gpu_after" else 0
    columns[column][where] = value
    write_table(columns, path)
    document = write_document(results.document, tmp_path / "analysis.json")
    with pytest.raises(DocumentError, match="not as this ffm writes it"):
        run_path(Results(tmp_path, document))


def test_a_graph_of_another_timeline_is_refused(tmp_path: Path) -> None:
    results = written(tmp_path / "one", measured())
    written(tmp_path / "other", several_ranks(3))
    (tmp_path / "one" / GRAPH_FILE).write_bytes((tmp_path / "other" / GRAPH_FILE).read_bytes())
    document: Analysis = write_document(results.document, tmp_path / "one" / "analysis.json")
    with pytest.raises(DocumentError, match="edited or truncated"):
        run_path(Results(tmp_path / "one", document))


def test_totals_have_empty_files_and_no_path(tmp_path: Path) -> None:
    results = written(tmp_path, dataclasses.replace(measured(), work=None))
    for file in FILES:
        assert not len(next(iter(read_table(tmp_path / file).values())))
    with pytest.raises(FfmError, match="totals per call stack"):
        path_view(results)


def test_a_region_names_only_sites_that_there_are(tmp_path: Path) -> None:
    document = written(tmp_path, measured()).document
    assert document.waiting is not None
    first = msgspec.structs.replace(document.waiting.regions[0], sites=[len(document.sites)])
    waiting = msgspec.structs.replace(document.waiting, regions=[first])
    wrong = msgspec.structs.replace(document, waiting=waiting)
    with pytest.raises(ValueError, match="a region names site"):
        wrong.check()
