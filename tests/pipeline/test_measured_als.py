"""A complete measurement of the sample `als`: the report finds its planted problems and only those."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from numpy.typing import NDArray
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from ffm.results.columnar.columns import Table
from ffm.results.columnar.tables import MappedColumns, stored_table
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.document import Document
from ffm.results.documents.notes import CostlyTracing
from ffm.results.documents.site import Site
from ffm.results.folder.paths import ResultsFolder
from ffm.results.stored import open_results
from ffm.stages import sync_use
from ffm.stages.analysis import descriptions, joined
from ffm.stages.analysis import stage as analysis_stage
from ffm.stages.measure import Request
from ffm.stages.registry import TABLES
from ffm.vgpu.paths import sample
from tests.agreement import disagreements
from tests.conftest import ROOT, Ffm
from tests.processes import run_to_end
from tests.quick_law import below_proof

ITERATIONS = 8
TRUTH = ROOT / "ffm" / "vgpu" / "samples" / "als.truth.toml"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Measure with the workflow, as a user does."""
    folder = tmp_path_factory.mktemp("als") / "results"
    printed = snakemake(folder)
    assert "Nothing has changed" not in printed
    return folder


def snakemake(results: Path) -> str:
    program = Path(sys.executable).with_name("snakemake")
    settings = [f"arguments={ITERATIONS}", f"results={results}"]
    done = run_to_end([program, "--configfile", "configs/als.yaml", "--config", *settings], seconds=200, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def analysis(results: Path) -> Analysis:
    return open_results(results).document


def test_what_is_up_to_date_is_not_measured_again_but_named(results: Path) -> None:
    measured = (results / "analysis.json").stat().st_mtime_ns
    printed = snakemake(results)
    assert "Nothing has changed since" in printed
    assert f"ffm report --results {results}" in printed
    assert (results / "analysis.json").stat().st_mtime_ns == measured


def test_quick_mode_promises_at_least_what_is_proved(results: Path, analysis: Analysis) -> None:
    assert below_proof(analysis, results) == []


def test_screens_show_the_same_figures(results: Path) -> None:
    assert disagreements(open_results(results)) == []


def line_of(site: Site) -> tuple[str, int]:
    return Path(site.file).name, site.line


def truth() -> list[dict[str, Any]]:
    return tomllib.loads(TRUTH.read_text())["call_site"]


def sites_at(analysis: Analysis, entry: dict[str, Any]) -> list[Site]:
    return [site for site in analysis.sites if line_of(site) == (entry["file"], entry["line"])]


def test_every_planted_problem_is_found(analysis: Analysis) -> None:
    missed = []
    for entry in truth():
        sites = sites_at(analysis, entry)
        if entry["planted"] and not (sites and all(site.problem_count for site in sites)):
            missed.append(f"{entry['file']}:{entry['line']} {entry['call']}")
    assert not missed


def test_nothing_needed_is_called_unnecessary(analysis: Analysis) -> None:
    wrong = []
    for entry in truth():
        for site in sites_at(analysis, entry):
            spare = sum(verdict.occurrences for verdict in site.synchronization if "unnecessary" in verdict.kind)
            if entry["synchronization"] == "required" and spare:
                wrong.append(f"{entry['file']}:{entry['line']} {site.synchronization}")
    assert not wrong


def test_only_planted_sites_matter(analysis: Analysis) -> None:
    """Everything else that is unnecessary happens once, at the start or the end, and not in the loop."""
    planted = {(entry["file"], entry["line"]) for entry in truth() if entry["planted"]}
    others = [site for site in analysis.sites if site.problem_count and line_of(site) not in planted]
    assert [site for site in others if site.count >= ITERATIONS] == []


def test_repeated_uploads_are_told_from_first_ones(analysis: Analysis) -> None:
    for entry in truth():
        if entry["transfer"] != "duplicate":
            continue
        for site in sites_at(analysis, entry):
            repeats = sum(verdict.occurrences for verdict in site.transfer if verdict.kind in ("repeat", "no-op"))
            assert repeats == ITERATIONS - 1, line_of(site)


def test_the_loop_is_one_sequence(analysis: Analysis, ffm: Ffm, results: Path) -> None:
    first = analysis.sequences[0]
    assert len(first.operations) == 23
    assert first.recurrences >= ITERATIONS - 1
    shown = ffm("subsequence", 10, 23, "--results", results, "--json")
    assert shown.code == 0, shown.err
    assert 0 < orjson.loads(shown.out)["saving"]["carry_s"] <= first.benefit.carry_s


def test_all_of_the_run_was_matched(analysis: Analysis) -> None:
    assert analysis.matching is not None
    assert analysis.matching.unmatched_s == 0
    # On a busy machine it is told that tracing took long, too.
    assert [note for note in analysis.notes if not isinstance(note, CostlyTracing)] == []


def test_the_program_was_not_disturbed(results: Path) -> None:
    """Each instrumented run writes what the bare program writes."""
    bare = subprocess.run([sample("als"), str(ITERATIONS)], capture_output=True, text=True, check=True).stdout
    for stage in ("baseline", "tracing", "memory", "sync-use"):
        assert (results / f"{stage}.log").read_text() == bare


@pytest.mark.parametrize("command", [("report",), ("sequence", "1"), ("fold", "cudaFree"), ("subsequence", "2", "5")])
def test_every_view_reads_the_results(ffm: Ffm, results: Path, command: tuple[str, ...]) -> None:
    shown = ffm(*command, "--results", results)
    assert shown.code == 0, shown.err
    assert "cudaFree" in shown.out


def test_damaged_results_are_refused(ffm: Ffm, results: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    document = copy / "memory.json"
    document.write_bytes(document.read_bytes()[:1000])
    again = ffm("stage", "analysis", "--results", copy)
    assert again.code == 1
    assert "edited or truncated" in again.err and "ffm stage memory" in again.err


@pytest.mark.parametrize("stage", ["baseline", "tracing", "memory", "sync-use"])
def test_every_stage_is_exported_whole(ffm: Ffm, results: Path, stage: str) -> None:
    done = ffm("export", "--stage", stage, "--results", results)
    assert done.code == 0, done.err
    content = orjson.loads(done.out)
    assert content["document"]["format"] == f"ffm.{stage.replace('-', '_')}"
    named = {name for name, value in content["document"].items() if str(value).endswith(".arrow")}
    assert content["tables"].keys() == named
    for table in content["tables"].values():
        assert len({len(column) for column in table.values()}) == 1


def test_the_stages_read_every_column_that_they_store(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What only `ffm export` dumps is dead weight in each run's results."""
    unread: dict[tuple[str, str], set[str]] = {
        (stage, name): set(table.columns) for stage, tables in TABLES.items() for name, table in tables.items()
    }

    class Noting(MappedColumns):
        stored: tuple[str, str]

        def __getitem__(self, name: str) -> NDArray[Any]:
            unread[self.stored].discard(name)
            return super().__getitem__(name)

    def noting(document: Document, name: str, table: Table, folder: Path) -> MappedColumns:
        columns = Noting(stored_table(document, name, table, folder), b"")
        columns.stored = document.format.removeprefix("ffm.").replace("_", "-"), name
        return columns

    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    for module in (analysis_stage, descriptions, joined, sync_use):
        monkeypatch.setattr(module, "stored_table", noting)
    folder = ResultsFolder(copy)
    command = open_results(copy).document.command
    sync_use.run_sync_use(Request(command, folder, 60.0))
    analysis_stage.run_analysis(folder)
    assert {table: columns for table, columns in unread.items() if columns} == {}


def test_analyzing_again_gives_the_same(
    results: Path, tmp_path: Path, analysis: Analysis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a machine where making pages takes longer: what was measured with the run counts."""
    copy = tmp_path / "copy"
    shutil.copytree(results, copy)
    monkeypatch.setattr(analysis_stage, "least_pinning_s", lambda: 1e-6)
    analysis_stage.run_analysis(ResultsFolder(copy))
    again = open_results(copy).document
    assert any(site.before_pinning_s is not None for site in again.sites)
    assert msgspec.structs.replace(again, runs=analysis.runs) == analysis


def test_each_free_in_the_loop_names_its_allocation(ffm: Ffm, results: Path) -> None:
    shown = ffm("remedies", "--all", "--json", "--results", results)
    assert shown.code == 0, shown.err
    remedies = orjson.loads(shown.out)["remedies"]
    allocations = {
        (entry["file"], entry["line"]): entry["allocated_at"]
        for entry in truth()
        if entry["planted"] and "allocated_at" in entry
    }
    checked = 0
    for remedy in remedies:
        where = Path(remedy["where"]["file"]).name, remedy["where"]["line"]
        if where in allocations and remedy["kind"] == "memory management":
            lines = [place["where"]["line"] for place in remedy["places"] if place["role"].startswith("allocation")]
            assert lines == [allocations[where]]
            checked += 1
    assert checked >= 17


def test_sarif_points_at_the_lines(ffm: Ffm, results: Path, tmp_path: Path) -> None:
    done = ffm("remedies", "--results", results, "--sarif", tmp_path / "ffm.sarif")
    assert done.code == 0, done.err
    log = orjson.loads((tmp_path / "ffm.sarif").read_bytes())
    lines = {
        (Path(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]).name,
         result["locations"][0]["physicalLocation"]["region"]["startLine"])
        for result in log["runs"][0]["results"]
    }  # fmt: skip
    needed = {(entry["file"], entry["line"]) for entry in truth() if entry["synchronization"] == "required"}
    assert len(lines) >= 17 and not lines & needed


def test_the_run_can_be_looked_at_in_perfetto(results: Path, analysis: Analysis, tmp_path: Path, ffm: Ffm) -> None:
    file = tmp_path / "als.pftrace"
    done = ffm("export", "--results", results, "--format", "perfetto", "-o", file)
    assert done.code == 0, done.err
    trace = Trace()
    trace.ParseFromString(file.read_bytes())
    path = {packet.track_descriptor.uuid for packet in trace.packet if packet.track_descriptor.name == "critical path"}
    assert len(path) == 1
    slices = [packet.track_event for packet in trace.packet if packet.track_event.type == TrackEvent.TYPE_SLICE_BEGIN]
    begun = Counter(event.name for event in slices if event.track_uuid not in path)
    ended = sum(packet.track_event.type == TrackEvent.TYPE_SLICE_END for packet in trace.packet)
    assert ended == len(slices)
    frees = sum(site.count for site in analysis.sites if site.call == "cudaFree")
    assert begun["cudaFree"] == frees
    assert begun["unnecessary synchronization: cudaFree"] > frees / 2
    assert begun["wait for the GPU"] >= frees
