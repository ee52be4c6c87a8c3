"""What is said about downloads that the program uses in part, and about those whose use is unknown."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
from rich.console import Console, RenderableType

from ffm.report.formats.html import html
from ffm.report.formats.sarif import sarif
from ffm.report.overview import overview
from ffm.report.remedies.view import remedies_view
from ffm.report.site import site
from ffm.report.terminal.overview import render_overview
from ffm.report.terminal.remedies import render_remedies
from ffm.report.terminal.site import render_site
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import DownloadUse, Verdict
from ffm.results.vocabulary import Because
from tests.report.sample_analysis import sample_analysis

MIB = 1 << 20


def use(**more: int | float | str) -> DownloadUse:
    values: dict[str, int | float | str] = {
        "occurrences": 10, "of": 12, "watch": "pages", "bytes": 40 * MIB, "touched_bytes": 40960, "first": 8192,
        "last": 12288, "saving_s": 7.5,
    }  # fmt: skip
    return DownloadUse(**{**values, **more})  # type: ignore[arg-type]


def analysis_with(
    download: DownloadUse | None, watch: str = "pages", because: Because = Because.RESULT_USED
) -> Analysis:
    """The fourth site, which has no other problem, downloads."""
    analysis = sample_analysis()
    changed = msgspec.structs.replace(
        analysis.sites[3],
        call="cudaMemcpy",
        download=download,
        synchronization=[Verdict(kind="required", because=because, occurrences=5000)],
    )
    return msgspec.structs.replace(analysis, sites=[*analysis.sites[:3], changed], watch=watch)


def text_of(screen: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=1000, highlight=False, markup=False)
    with console.capture() as capture:
        console.print(screen)
    return capture.get()


def test_a_site_says_how_much_is_touched() -> None:
    shown = text_of(render_site(site(analysis_with(use()), 4)))
    assert (
        "Of 40.00 MiB downloaded, the CPU touched at most 40.00 KiB, in each between byte 8,192 and byte 12,288 "
        "(10 of 12 downloads watched to the end)." in shown
    )


def test_the_report_lists_partial_downloads_with_what_they_save_at_most() -> None:
    view = overview(analysis_with(use()))
    assert [one.where.site for one in view.downloads] == [4]
    assert "A smaller download saves at most 7.500 s (0.75 %)." in text_of(render_overview(view, 1000))
    assert "touched at most 40.00 KiB" in html(analysis_with(use()))


def test_a_download_that_is_touched_is_no_remark_in_the_report() -> None:
    for touched in (30 * MIB, 40 * MIB):
        assert overview(analysis_with(use(touched_bytes=touched))).downloads == []
    assert overview(analysis_with(use(bytes=81920, touched_bytes=0))).downloads == []


def test_what_is_touched_of_all_downloads_decides_not_that_of_the_largest() -> None:
    """One of 20 MiB of which nothing is touched, among nine of 2 MiB that are touched completely; and one such
    alone.
    """
    assert overview(analysis_with(use(bytes=38 * MIB, touched_bytes=18 * MIB))).downloads != []
    assert overview(analysis_with(use(bytes=38 * MIB, touched_bytes=20 * MIB))).downloads == []


def test_the_remedy_is_to_download_that_part() -> None:
    view = remedies_view(analysis_with(use()))
    found = next(remedy for remedy in view.remedies if remedy.where.site == 4)
    assert found.kind == "download of data that nobody touches"
    assert (found.occurrences, found.of, found.saving.carry_s) == (10, 12, 7.5)
    assert "Download only that part: 4,096 bytes from byte 8,192 on." in found.steps
    assert any("the other 2 downloads" in step for step in found.steps)
    shown = text_of(render_remedies(view))
    assert "saves at most 7.500 s (0.75 %) by itself;" in shown
    assert "Download only that part" in shown


def test_that_a_saving_is_only_a_limit_is_said_everywhere() -> None:
    """The savings of the other remedies are expectations, and are never reported as limits."""
    analysis = analysis_with(use())
    view = remedies_view(analysis)
    assert [remedy.saving.at_most for remedy in view.remedies] == [remedy.where.site == 4 for remedy in view.remedies]
    assert "at most 7.500 s (0.75 %) alone" in " ".join(html(analysis, remedies=view).split())
    told = {
        place["message"]["text"].partition(" saves ")[2].partition(".")[0]: place["properties"]["benefitIsAtMost"]
        for place in sarif(view, Path.cwd())["runs"][0]["results"]
    }
    assert told == {"10": False, "2": False, "at most 7": True}


def test_downloads_without_any_other_problem_have_their_remedy_and_site_on_the_page() -> None:
    analysis = analysis_with(use())
    only = msgspec.structs.replace(
        analysis,
        sites=[
            *(
                msgspec.structs.replace(one, problem_count=0, synchronization=[], transfer=[])
                for one in analysis.sites[:3]
            ),
            analysis.sites[3],
        ],
        folds=[],
        sequences=[],
        points=[],
    )
    page = html(only, remedies=remedies_view(only))
    assert "No unnecessary or misplaced synchronization" in page
    assert "Download only that part" in page
    assert set(re.findall(r'href="#(site-\d+)"', page)) <= set(re.findall(r'id="(site-\d+)"', page)) != set()


def test_parts_that_lie_apart_are_gathered_and_what_nobody_touches_is_left_out() -> None:
    apart = remedies_view(analysis_with(use(first=0, last=4 * MIB))).remedies
    assert any("gather them" in step for remedy in apart for step in remedy.steps)
    nothing = remedies_view(analysis_with(use(touched_bytes=0, first=0, last=0))).remedies
    assert any(step.startswith("Remove the download") for remedy in nothing for step in remedy.steps)


def test_what_is_not_known_is_said_with_what_may_tell() -> None:
    shown = text_of(render_site(site(analysis_with(DownloadUse(occurrences=0, of=3, watch="pages")), 4)))
    assert "It is unknown how much" in shown
    assert "ffm stage memory --watch trace ./als 100 'a b'" in shown
    traced = site(analysis_with(DownloadUse(occurrences=0, of=3, watch="trace"), watch="trace"), 4)
    assert traced.hint == ""


def test_a_hint_names_the_results_that_the_user_named() -> None:
    analysis = analysis_with(None, because=Because.NOT_WATCHED)
    words = "--results 'my results'"
    command = f"ffm stage memory --watch trace {words} ./als 100 'a b'"
    assert command in site(analysis, 4, results=words).hint
    assert any(command in note for note in overview(analysis, results=words).notes)


def test_waits_for_unwatched_memory_are_a_note_with_a_hint() -> None:
    because = Because.NOT_WATCHED
    hint = "--watch trace ./als"
    assert any(hint in note for note in overview(analysis_with(None, because=because)).notes)
    assert hint in site(analysis_with(None, because=because), 4).hint
    assert not any(hint in note for note in overview(analysis_with(None)).notes)
    assert not any(hint in note for note in overview(analysis_with(None, watch="trace", because=because)).notes)
