"""`ffm export` and `ffm import` through the entry point."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from tests.cli.command_line import CommandLine, write_small_results
from tests.sources.nsight_reports import Report


@pytest.fixture
def ffm(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    monkeypatch.chdir(tmp_path)
    return CommandLine(monkeypatch, capfd)


def test_json_on_standard_output_and_in_a_file_is_the_same(ffm: CommandLine, tmp_path: Path) -> None:
    write_small_results(tmp_path / "results" / "solve")
    printed = ffm("export").output
    assert ffm("export", "-o", "all.json").output == "Wrote all.json.\n"
    assert (tmp_path / "all.json").read_text() == printed
    content = orjson.loads(printed)
    assert len(content["timeline"]["start"]) == 300
    assert len(content["analysis"]["sites"]) == 3


def test_a_speedscope_file_is_written(ffm: CommandLine, tmp_path: Path) -> None:
    write_small_results(tmp_path / "results" / "solve")
    answer = ffm("export", "--format", "speedscope", "-o", "profile.json")
    assert (answer.status, answer.output) == (0, "Wrote profile.json. Open it in https://www.speedscope.app\n")
    assert len(orjson.loads((tmp_path / "profile.json").read_bytes())["profiles"]) == 4


def test_importing_from_a_folder_that_is_none_is_refused(ffm: CommandLine) -> None:
    answer = ffm("import", "diogenes", "nowhere")
    assert answer.status == 1
    assert answer.errors.startswith("ffm: ")
    assert "nowhere" in answer.errors
    assert len(answer.errors.splitlines()) == 1


def test_importing_half_a_folder_is_refused(ffm: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "diogenes-half").mkdir()
    (tmp_path / "diogenes-half" / "combined_stacks.json").write_text('[{"GlobalID":')
    (tmp_path / "diogenes-half" / "ttime.txt").write_text("12.5\n")
    answer = ffm("import", "diogenes", "diogenes-half")
    assert answer.status == 1
    assert "combined_stacks.json" in answer.errors
    assert not (tmp_path / "results").exists()


def test_a_report_of_nsight_systems_is_imported_and_shown(ffm: CommandLine, tmp_path: Path) -> None:
    report = Report()
    for begin in range(0, 1000, 100):
        report.kernel("step", begin + 6, begin + 56, report.call("cudaLaunchKernel_v7000", begin, begin + 5))
        report.wait(report.call("cudaDeviceSynchronize_v3020", begin + 6, begin + 57))
    report.write(tmp_path / "run.sqlite")
    assert ffm("import", "nsys", "run.sqlite").status == 0
    shown = ffm("report").output
    assert "Imported from nsys." in shown and "cudaDeviceSynchronize (beside step)" in shown
    assert "saves at most" in shown and "No unnecessary" not in shown
    assert "Nothing is proved unnecessary" in ffm("remedies").output
    assert "does not show whether the program needs these waits" in ffm("site", "2").output
    assert ffm("report", "--html", "page.html").status == 0
    assert "beside step" in (tmp_path / "page.html").read_text()


def test_sites_of_a_profilers_trace_are_no_choice_for_a_measurement(ffm: CommandLine, tmp_path: Path) -> None:
    report = Report()
    report.kernel("step", 6, 56, report.call("cudaLaunchKernel", 0, 5))
    report.wait(report.call("cudaDeviceSynchronize", 6, 57))
    report.write(tmp_path / "run.sqlite")
    assert ffm("import", "nsys", "run.sqlite", "--results", "traced").status == 0
    answer = ffm("run", "--sites", "worst:1", "--sites-of", "traced", "/bin/true")
    assert answer.status == 1
    assert "imported from nsys" in answer.errors and "`ffm run --quick`" in answer.errors
    assert not (tmp_path / "results").exists()


def test_what_is_no_report_is_refused(ffm: CommandLine, tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").write_text("no database")
    answer = ffm("import", "nsys", "run.sqlite")
    assert answer.status == 1
    assert "run.sqlite cannot be read as a report of Nsight Systems" in answer.errors
    assert len(answer.errors.splitlines()) == 1
    assert not (tmp_path / "results").exists()
