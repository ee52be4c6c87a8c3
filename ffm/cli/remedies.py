"""`ffm remedies`: what to change, where, and what it would save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ffm.cli.options import (
    checkout,
    estimator_option,
    json_option,
    open_chosen,
    results_option,
    results_words,
    view_command,
)
from ffm.cli.printing import print_view, write_output

if TYPE_CHECKING:
    from ffm.report.numbers import Estimator


@click.command(cls=view_command("ffm.report.remedies.view:RemediesView"))
@estimator_option
@results_option
@json_option
@click.option("--all", "show_all", is_flag=True, help="Also show remedies that save less than 0.1 % of the run.")
@click.option(
    "--sarif",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the remedies as SARIF 2.1.0 to this file.",
)
def remedies(
    estimator: Estimator | None, folder: Path | None, as_json: bool, show_all: bool, sarif: Path | None
) -> None:
    """For each problem, show its kind, the steps to fix it and every place that must change, largest benefit first."""
    from ffm.report.remedies.view import remedies_view

    opened = open_chosen(folder)
    view = remedies_view(opened.document, estimator, show_all=show_all, results=results_words(folder), own=opened.own)
    if sarif is not None:
        import orjson

        from ffm.report.formats.sarif import sarif as sarif_log

        log = sarif_log(view, checkout())
        write_output([orjson.dumps(log, option=orjson.OPT_INDENT_2)], sarif)
        unknown = len(view.remedies) - len(log["runs"][0]["results"])
        without = f"; {unknown} remedies without a known source line are left out" if unknown else ""
        click.echo(f"Wrote {sarif}: {len(log['runs'][0]['results'])} results{without}.")
        return
    from ffm.report.terminal.remedies import render_remedies

    print_view(view, render_remedies, as_json=as_json)
