"""`ffm path`: what a run waits for."""

from __future__ import annotations

from pathlib import Path

import click

from ffm.cli.options import json_option, open_chosen, results_option, results_words, view_command
from ffm.cli.printing import print_view
from ffm.results.memory.small_pages import small_pages


@click.command(
    cls=view_command(
        "ffm.report.waiting.path:PathView",
        "ffm.report.waiting.region:RegionView",
        "ffm.report.waiting.changes:ChangeView",
    )
)
@click.argument("region", required=False)
@click.option(
    "--if",
    "changes",
    multiple=True,
    metavar="REGION=2x",
    help="Replay the run with a region twice as fast, or by another factor; `=gone` removes it. REGION is a number, "
    "words of names, or GPU for all work there. Can be repeated.",
)
@click.option("--fixed", is_flag=True, help="Show the path as it would be after all fixes of `ffm remedies`.")
@results_option
@json_option
@click.option("--all", "show_all", is_flag=True, help="Show all regions, also those off the path.")
@small_pages()
def path(
    region: str | None,
    changes: tuple[str, ...],
    fixed: bool,
    folder: Path | None,
    as_json: bool,
    show_all: bool,
) -> None:
    """Show what the run waits for: the critical path, its regions, and what making them faster would save.

    REGION, by its number or words of its name, shows one of them.
    """
    from ffm.report.terminal.path import render_change, render_path, render_region
    from ffm.report.waiting.changes import change_view
    from ffm.report.waiting.path import fixed_view, path_view
    from ffm.report.waiting.region import region_view

    if (region is not None) + bool(changes) + fixed > 1:
        raise click.UsageError("choose one: name a REGION, or use --if, or --fixed.")
    results, words = open_chosen(folder), results_words(folder)
    if changes:
        print_view(change_view(results, changes), render_change, as_json=as_json)
    elif region is not None:
        print_view(region_view(results, region, words), render_region, as_json=as_json)
    else:
        view = (fixed_view if fixed else path_view)(results, show_all=show_all, words=words)
        print_view(view, render_path, as_json=as_json)
