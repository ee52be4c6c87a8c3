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
    import orjson

    from ffm.report.remedies.view import remedies_view

    opened = open_chosen(folder)
    view = remedies_view(opened.document, estimator, show_all=show_all, results=results_words(folder), own=opened.own)
    if sarif is not None:
        from ffm.report.formats.sarif import sarif as sarif_log
        from ffm.whole_file import named_output

        log = sarif_log(view, checkout())
        with named_output(sarif) as file:
            file.write(orjson.dumps(log, option=orjson.OPT_INDENT_2))
        unknown = len(view.remedies) - len(log["runs"][0]["results"])
        without = f"; {unknown} remedies without a known source line are left out" if unknown else ""
        click.echo(f"Wrote {sarif}: {len(log['runs'][0]['results'])} results{without}.")
        return
    if as_json:
        click.echo(orjson.dumps(view, option=orjson.OPT_INDENT_2))
        return
    from ffm.report.terminal.printing import print_screen
    from ffm.report.terminal.remedies import render_remedies

    print_screen(render_remedies, view)
