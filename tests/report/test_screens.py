"""Screens printed at 80 columns, compared with the ones kept in `screens/`.

After an intended change, `FFM_UPDATE_SCREENS=1 pytest tests/report` rewrites them; read the difference.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import RenderableType

from ffm.report.fold import fold
from ffm.report.overview import overview
from ffm.report.sequence import sequence, subsequence
from ffm.report.site import site
from ffm.report.terminal.fold import render_fold
from ffm.report.terminal.layout import Column, table
from ffm.report.terminal.overview import render_overview
from ffm.report.terminal.printing import print_screen
from ffm.report.terminal.sequence import render_sequence
from ffm.report.terminal.site import render_site
from tests.report.printed import text_of
from tests.report.sample_analysis import benefit, imported_analysis, sample_analysis

SCREENS = Path(__file__).with_name("screens")


def screens(width: int = 80) -> dict[str, RenderableType]:
    analysis = sample_analysis()
    return {
        "report": render_overview(overview(analysis), width),
        "report-bound": render_overview(overview(analysis, "bound", show_all=True), width),
        "sequence": render_sequence(sequence(analysis, 1), width),
        "subsequence": render_sequence(subsequence(analysis, 1, 2, 3, benefit(7, 8), "bound"), width),
        "fold": render_fold(fold(analysis, "cudaFree", show_all=True), width),
        "site": render_site(site(analysis, 3), width),
    }


@pytest.mark.parametrize("name", list(screens()))
def test_a_screen_is_as_kept(name: str) -> None:
    kept, shown = SCREENS / f"{name}.txt", text_of(screens()[name])
    if os.environ.get("FFM_UPDATE_SCREENS"):
        kept.write_text(shown)
    assert shown == kept.read_text()


@pytest.mark.parametrize("width", [60, 72, 80, 100, 120, 200])
@pytest.mark.parametrize("name", list(screens()))
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    shown = text_of(screens(width)[name], width)
    assert max(map(len, shown.splitlines())) <= width
    numbers = re.findall(r"\d+\.\d{3} s", text_of(screens()[name]))
    assert sorted(re.findall(r"\d+\.\d{3} s", shown)) == sorted(numbers)


def test_rows_that_do_not_fit_go_on_below(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print_screen(render_overview, overview(sample_analysis()))
    lines = capsys.readouterr().out.splitlines()
    row = lines.index("    cudaFree als.cu:760")
    assert lines[row - 1].split() == ["10.000", "s", "1.00", "%", "12.000", "s", "1.20", "%", "1", "5,000"]


def test_below_the_narrowest_width_no_number_is_cut(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_screen(render_overview, overview(sample_analysis()))
    narrow = capsys.readouterr().out.splitlines()
    whole = text_of(screens(60)["report"], 60).splitlines()
    rows = [line for line in whole if re.match(r" +\d+\.\d{3} s +\d", line)]
    assert len(rows) > 2 and set(rows) <= set(narrow)
    assert max(len(line) for line in narrow if line.startswith("  - ")) <= 40


@pytest.mark.parametrize("name", list(screens()))
def test_no_screen_is_coloured_in_a_pipe(name: str) -> None:
    shown = text_of(screens()[name])
    assert "\x1b" not in shown


def test_a_trace_that_proves_nothing_is_not_said_to_be_free_of_problems() -> None:
    shown = text_of(render_overview(overview(imported_analysis())), 200)
    assert "at most 9.000 s (0.90 %), likely 4.500 s; called 40 times, for 30.500 s, of which it waited 20" in shown
    small = text_of(render_overview(overview(imported_analysis(0.1))), 200)
    assert "Nothing saves 0.1 % of the run" in small
    assert "worth proving" not in small
    nothing = text_of(render_overview(overview(imported_analysis(0))), 200)
    assert "The trace shows no wait for a GPU" in nothing


@pytest.mark.parametrize(
    ("kind", "said"), [("transfer", "bytes moved"), ("allocation", "bytes allocated"), ("free", "bytes freed")]
)
def test_the_bytes_of_a_call_are_called_what_they_are(kind: str, said: str) -> None:
    view = replace(site(sample_analysis(), 3), kind=kind, bytes=1 << 20)
    assert re.search(rf"{said} +1\.00 MiB", text_of(render_site(view)))


def test_a_site_of_a_trace_is_not_said_to_recover_nothing() -> None:
    shown = text_of(render_site(site(imported_analysis(), 4)))
    assert "Saving" not in shown
    assert "with a problem" not in shown
    assert "One trace does not show whether the program needs these waits" in shown


def test_long_texts_of_a_wrapped_column_go_on_below() -> None:
    columns = [Column("seconds", right=True), Column("region", flexible=True, wrapped=True)]
    rows = [["1.5 s", "CPU a_function_of_some_length place.cu:120"], ["2.5 s", f"kernel {'a' * 40}"]]
    lines = text_of(table(columns, rows, 36), 36).splitlines()
    indent = " " * 11
    assert lines[1:] == [
        "    1.5 s  CPU",
        f"{indent}a_function_of_some_length",
        f"{indent}place.cu:120",
        f"    2.5 s  kernel {'a' * 7}...{'a' * 8}",
    ]


def test_large_numbers_are_never_cut() -> None:
    analysis = sample_analysis()
    large = benefit(123456789.123, 987654321.987)
    analysis = msgspec.structs.replace(
        analysis,
        wall_s=1e9,
        folds=[msgspec.structs.replace(group, benefit=large, count=10**12) for group in analysis.folds],
    )
    shown = text_of(render_overview(overview(analysis), 80))
    for number in ("123456789.123 s", "987654321.987 s", "1,000,000,000,000"):
        assert number in shown


def test_a_wide_terminal_shows_the_whole_name() -> None:
    shown = text_of(render_fold(fold(sample_analysis(), "cudaFree", show_all=True), 160), 160)
    assert "thrust::detail::contiguous_storage<...>::deallocate*" in shown


def test_a_program_without_problems_gets_a_clear_sentence() -> None:
    analysis = msgspec.structs.replace(sample_analysis(), folds=[], sequences=[], points=[])
    assert "No unnecessary or misplaced synchronization" in text_of(render_overview(overview(analysis)))
