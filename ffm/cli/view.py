"""The commands that show results: `report`, `sequence`, `subsequence`, `fold`, `site`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ffm.cli.options import estimator_option, json_option, open_chosen, results_option, results_words, view_command
from ffm.cli.printing import print_view
from ffm.results.memory.small_pages import small_pages

if TYPE_CHECKING:
    from ffm.report.numbers import Estimator


@click.command(cls=view_command("ffm.report.overview:Overview", "ffm.report.lines:LinesView"))
@estimator_option
@results_option
@json_option
@click.option("--all", "show_all", is_flag=True, help="Also show rows below 0.1 % of the run.")
@click.option(
    "--by",
    "order",
    type=click.Choice(["line"]),
    help="One list instead: a row for each source line of the program, with all calls that it makes or leads to.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write everything to one self-contained HTML file.",
)
@small_pages()
def report(
    estimator: Estimator | None,
    folder: Path | None,
    as_json: bool,
    show_all: bool,
    order: str | None,
    html: Path | None,
) -> None:
    """Show what could be saved: folds, sequences and single points, in seconds and percent of the run."""
    from ffm.report.numbers import chosen_estimator
    from ffm.report.overview import overview
    from ffm.report.terminal.overview import render_overview

    if order is not None and html is not None:
        raise click.UsageError("--html holds every list: leave out --by.")
    opened = open_chosen(folder)
    analysis = opened.document
    chosen = chosen_estimator(analysis, estimator)
    if order is not None:
        from ffm.report.lines import lines
        from ffm.report.terminal.lines import render_lines

        print_view(
            lines(opened, chosen, show_all=show_all, results=results_words(folder)), render_lines, as_json=as_json
        )
        return
    if html is not None:
        from ffm.report.formats.html import write_html
        from ffm.report.formats.timeline import timeline_data
        from ffm.report.remedies.view import remedies_view

        words = results_words(folder)
        remedies = remedies_view(analysis, chosen, show_all=show_all, results=words, own=opened.own)
        drawn = timeline_data(opened)
        write_html(analysis, html, chosen, remedies, show_all=show_all, results=words, timeline=drawn)
        click.echo(f"Wrote {html}.")
        return
    view = overview(analysis, chosen, show_all=show_all, results=results_words(folder))
    print_view(view, render_overview, as_json=as_json)


@click.command(cls=view_command("ffm.report.sequence:SequenceView"))
@click.argument("number", type=int, default=1)
@estimator_option
@results_option
@json_option
def sequence(number: int, estimator: Estimator | None, folder: Path | None, as_json: bool) -> None:
    """Show sequence NUMBER (1 is the first): operations that can be fixed together, numbered."""
    from ffm.report.numbers import chosen_estimator
    from ffm.report.sequence import sequence as lay_out
    from ffm.report.terminal.sequence import render_sequence

    analysis = open_chosen(folder).document
    view = lay_out(analysis, number, chosen_estimator(analysis, estimator), results_words(folder))
    print_view(view, render_sequence, as_json=as_json)


@click.command(cls=view_command("ffm.report.sequence:SequenceView", "ffm.report.best:BestView"))
@click.argument("start", type=int, required=False)
@click.argument("end", type=int, required=False)
@click.option("--sequence", "number", type=int, default=1, show_default=True, help="The sequence that contains them.")
@click.option(
    "--best",
    type=int,
    metavar="K",
    help="Instead of START and END: show the K parts that save most for the fewest places to change.",
)
@estimator_option
@results_option
@json_option
def subsequence(
    start: int | None,
    end: int | None,
    number: int,
    best: int | None,
    estimator: Estimator | None,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Estimate what fixing only operations START to END of a sequence would save. Needs no new run."""
    from ffm.report.numbers import chosen_estimator
    from ffm.report.sequence import check_part, check_sequence
    from ffm.report.sequence import subsequence as lay_out
    from ffm.report.terminal.best import render_best
    from ffm.report.terminal.sequence import render_sequence
    from ffm.results.stored import subsequence as estimate

    if (best is None) == (start is None or end is None):
        raise click.UsageError("name START and END, or ask for the best parts with --best K.")
    results = open_chosen(folder)
    chosen = chosen_estimator(results.document, estimator)
    words = results_words(folder)
    if best is not None:
        from ffm.report.best import best as lay_out_best
        from ffm.results.best_parts import best_subsequences

        check_sequence(results.document, number)
        parts = best_subsequences(results, number, best, chosen)
        print_view(lay_out_best(results.document, number, parts, chosen, words), render_best, as_json=as_json)
    elif start is not None and end is not None:
        check_part(results.document, number, start, end)
        benefit = estimate(results, number, start, end).benefit
        print_view(
            lay_out(results.document, number, start, end, benefit, chosen, words), render_sequence, as_json=as_json
        )


@click.command(cls=view_command("ffm.report.fold:FoldView"))
@click.argument("name")
@estimator_option
@results_option
@json_option
@click.option("--all", "show_all", is_flag=True, help="Also show sites below 0.1 % of the run.")
def fold(name: str, estimator: Estimator | None, folder: Path | None, as_json: bool, show_all: bool) -> None:
    """Show all calls of the function NAME (`cudaFree`), by the functions that make them."""
    from ffm.report.fold import fold as lay_out
    from ffm.report.numbers import chosen_estimator
    from ffm.report.terminal.fold import render_fold

    analysis = open_chosen(folder).document
    chosen = chosen_estimator(analysis, estimator)
    view = lay_out(analysis, name, chosen, show_all=show_all, results=results_words(folder))
    print_view(view, render_fold, as_json=as_json)


@click.command(cls=view_command("ffm.report.site:SiteView"))
@click.argument("number", type=int)
@estimator_option
@results_option
@json_option
def site(number: int, estimator: Estimator | None, folder: Path | None, as_json: bool) -> None:
    """Show site NUMBER, one call at one place: its stack, times and verdicts."""
    from ffm.report.numbers import chosen_estimator
    from ffm.report.site import site as lay_out
    from ffm.report.terminal.site import render_site
    from ffm.results.stored import doing_without

    results = open_chosen(folder)
    analysis = results.document
    chosen, without = chosen_estimator(analysis, estimator), doing_without(results, number - 1)
    view = lay_out(analysis, number, chosen, without, results_words(folder))
    print_view(view, render_site, as_json=as_json)
