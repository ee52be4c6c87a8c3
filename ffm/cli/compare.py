"""`ffm compare`: what a change of a program brought."""

from __future__ import annotations

from pathlib import Path

import click

from ffm.cli.options import json_option, open_chosen, view_command

_FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command(cls=view_command("ffm.report.compare:CompareView"))
@click.argument("old", type=_FOLDER)
@click.argument("new", type=_FOLDER)
@click.option(
    "--more-old",
    type=_FOLDER,
    multiple=True,
    metavar="FOLDER",
    help="Another measurement of the program before the change, for the spread of its time; can be repeated.",
)
@click.option(
    "--more-new", type=_FOLDER, multiple=True, metavar="FOLDER", help="Likewise, of the program after the change."
)
@json_option
def compare(old: Path, new: Path, more_old: tuple[Path, ...], more_new: tuple[Path, ...], as_json: bool) -> None:
    """Show what a change brought: the run's time, sites that are gone, come and changed, and what was estimated.

    OLD and NEW are folders with the results of the program before and after the change.
    """
    import orjson

    from ffm.report.compare import compare as lay_out
    from ffm.report.terminal.compare import compare_lines

    walls = [[open_chosen(folder).document.wall_s for folder in folders] for folders in (more_old, more_new)]
    view = lay_out(open_chosen(old), open_chosen(new), *walls)
    if as_json:
        click.echo(orjson.dumps(view, option=orjson.OPT_INDENT_2))
        return
    for line in compare_lines(view):
        click.echo(line)
