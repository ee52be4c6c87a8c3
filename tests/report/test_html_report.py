"""The HTML report is complete, needs nothing from outside, and escapes what comes from the program."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from ffm.report.formats.html import html, write_html
from ffm.report.formats.pictures import BARS, MOST_ROWS, calls_picture, run_picture, sequence_picture
from ffm.report.remedies.view import remedies_view
from ffm.results.documents.notes import UnidentifiedModule
from tests.report.sample_analysis import benefit, imported_analysis, sample_analysis

VOID = {"meta"}


class _Checker(HTMLParser):
    """Collects identifiers and links, and rejects tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.identifiers: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.tags.add(tag)
        self.identifiers += [values["id"] or ""] if "id" in values else []
        self.links += [value or "" for key, value in attrs if key in ("href", "src", "xlink:href")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(text: str) -> _Checker:
    checker = _Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return checker


def test_every_link_leads_to_a_site_in_the_file_and_none_outside() -> None:
    checker = checked(html(sample_analysis()))
    assert checker.links
    assert {link.removeprefix("#") for link in checker.links} <= set(checker.identifiers)
    assert not checker.tags & {"script", "link", "img", "iframe"}
    assert len(checker.identifiers) == len(set(checker.identifiers))


def test_remedies_stand_with_every_place_that_must_change() -> None:
    analysis = sample_analysis()
    remedies = remedies_view(analysis, show_all=True)
    assert remedies.remedies
    text = html(analysis, "carry", remedies)
    checker = checked(text)
    assert {link.removeprefix("#") for link in checker.links} <= set(checker.identifiers)
    assert "What to change" in text
    for remedy in remedies.remedies:
        assert all(escape(step, quote=False) in unescape_quotes(text) for step in remedy.steps)
    assert "What to change" not in html(analysis)


def unescape_quotes(text: str) -> str:
    return text.replace("&#39;", "'").replace("&#34;", '"')


def test_it_says_what_the_screens_say() -> None:
    text = _breaking(html(sample_analysis()))
    for expected in (
        "12.500 s (1.25 %)",
        "nothing that the CPU does afterwards relies on work that this wait is the first to cover",
        "als.cu:738",
        "libcudart.so.13+0x41f0",
        "libals.so cannot be read (No such file or directory), so its functions have no names.",
        "Site 2: 5,000 of its operations in stage 2 have no counterpart in stage 3, and count as needed.",
    ):
        assert expected in text


def test_names_out_of_the_program_are_escaped() -> None:
    nasty = "<script>alert(1)</script>"
    analysis = msgspec.structs.replace(sample_analysis(), application=nasty, notes=[UnidentifiedModule(path=nasty)])
    analysis = msgspec.structs.replace(
        analysis, sites=[msgspec.structs.replace(site, caller=nasty) for site in analysis.sites]
    )
    text = html(analysis)
    assert nasty not in text
    assert "script" not in checked(text).tags


def test_commands_name_the_results_that_the_user_named() -> None:
    analysis = sample_analysis()
    view = remedies_view(analysis, show_all=True)
    able = replace(view, remedies=[replace(remedy, automatic=["--skip-syncs"]) for remedy in view.remedies])
    for words, end in (("", ""), ("--results here", " --results here")):
        page = html(analysis, remedies=able, results=words)
        commands = set(re.findall("<code>(ffm [^<]*)</code>", page))
        assert f"ffm report --all --html FILE{end}" in commands
        assert f"ffm apply-remedy --skip-syncs --site 1{end}" in commands


def test_no_line_breaks_between_a_number_and_its_unit() -> None:
    page = html(sample_analysis())
    assert "12.500\N{NO-BREAK SPACE}s (1.25\N{NO-BREAK SPACE}%)" in page
    shown = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\d (%|s)(?!\w)", shown)


def _breaking(page: str) -> str:
    """Return a page with ordinary spaces alone."""
    return page.replace("\N{NO-BREAK SPACE}", " ")


def test_changes_that_are_all_hidden_are_counted() -> None:
    analysis = sample_analysis()
    page = _breaking(html(analysis, remedies=replace(remedies_view(analysis, show_all=True), remedies=[], hidden=2)))
    assert "<h2>What to change</h2>" in page
    assert "2 places hidden (" in page.partition("<h2>What to change</h2>")[2]


def test_nothing_found_is_said() -> None:
    analysis = msgspec.structs.replace(sample_analysis(), folds=[], sequences=[], points=[])
    assert "No unnecessary or misplaced synchronization" in html(analysis)


def test_of_a_trace_that_proves_nothing_only_a_most_is_said() -> None:
    page = _breaking(html(imported_analysis()))
    assert "could be saved" not in page
    assert "saves at most 9.000 s" in page
    assert "20.250 s" in page  # how long it waited, beside that
    assert '<a href="#site-1">' in page
    assert {link.removeprefix("#") for link in checked(page).links} <= set(checked(page).identifiers)
    small = _breaking(html(imported_analysis(0.1)))
    assert "Nothing saves 0.1 % of the run, even if it proves unnecessary" in small
    assert "No unnecessary" not in html(imported_analysis(0))


def test_a_file_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_html(sample_analysis(), tmp_path / "no" / "folder.html")


def test_bars_are_as_long_as_the_times_they_stand_for() -> None:
    analysis = sample_analysis()
    [line] = run_picture(analysis, "carry").lines
    *shares, recoverable = line.bars
    assert sum(bar.width for bar in shares) == pytest.approx(BARS)
    assert {bar.kind: bar.width / BARS * 1000 for bar in shares} == pytest.approx(
        {"cpu": 1000 - 4 * 30.5, "call": 4 * 10.25, "wait": 20.25, "problem": 3 * 20.25}
    )
    assert recoverable.width / BARS * 1000 == pytest.approx(12.5)
    assert shares[0].x == recoverable.x == 0.0


def test_the_picture_of_the_run_saves_what_its_words_say() -> None:
    """Everything fixed together, which can be more than the sequences."""
    analysis = sample_analysis()
    together = msgspec.structs.replace(analysis, everything=benefit(13.25, 20.0))
    [line] = run_picture(together, "carry").lines
    assert "13.250 s" in line.value and line.bars[-1].width / BARS * analysis.wall_s == pytest.approx(13.25)


def test_calls_are_summed_over_their_sites() -> None:
    lines = calls_picture(sample_analysis(), "bound").lines
    assert [line.label for line in lines] == ["cudaFree", "cudaMemcpy", "cudaDeviceSynchronize"]
    assert lines[0].value == "61.000 s, saves 12.500 s"
    assert max(bar.x + bar.width for line in lines for bar in line.bars) <= BARS


def test_the_whole_run_and_its_calls_have_the_same_colours() -> None:
    analysis = sample_analysis()
    sites = {kind for line in calls_picture(analysis, "carry").lines for kind in (bar.kind for bar in line.bars)}
    whole = {bar.kind for bar in run_picture(analysis, "carry").lines[0].bars}
    assert whole == sites | {"cpu"}


def test_a_run_of_several_threads_is_drawn_to_the_sum_of_their_calls() -> None:
    analysis = msgspec.structs.replace(sample_analysis(), wall_s=10.0)
    [line] = run_picture(analysis, "carry").lines
    assert "cpu" not in [bar.kind for bar in line.bars]
    assert max(bar.x + bar.width for bar in line.bars) == pytest.approx(BARS)


def test_a_run_without_time_draws_no_bars() -> None:
    analysis = sample_analysis()
    idle = [msgspec.structs.replace(site, total_s=0.0, wait_s=0.0, benefit=benefit(0, 0)) for site in analysis.sites]
    picture = calls_picture(msgspec.structs.replace(analysis, sites=idle, folds=[]), "carry")
    assert picture.lines == []


def test_very_long_sequences_are_drawn_in_part_and_listed_whole() -> None:
    analysis = sample_analysis()
    operations = analysis.sequences[0].operations * MOST_ROWS
    long = msgspec.structs.replace(analysis.sequences[0], operations=operations)
    analysis = msgspec.structs.replace(analysis, sequences=[long])
    picture = sequence_picture(analysis, 1, "carry")
    assert (len(picture.lines), picture.omitted) == (MOST_ROWS, 2 * MOST_ROWS)
    assert len(re.findall(r"<td>synchronization, transfer</td>", html(analysis))) == MOST_ROWS
