"""`ffm compare`: what a change to a program brought."""

from __future__ import annotations

from pathlib import Path

import click

from ffm.cli.options import checkout, json_option, open_chosen, view_command
from ffm.errors import FfmError

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
@click.option(
    "--format",
    "kind",
    type=click.Choice(["terminal", "json", "github", "sarif", "junit"]),
    default="terminal",
    show_default=True,
    help="All but the first two list only what is worse than before.",
)
@json_option
def compare(
    old: Path, new: Path, more_old: tuple[Path, ...], more_new: tuple[Path, ...], kind: str, as_json: bool
) -> None:
    """Show what a change brought: the run's time, sites that are gone, new or changed, and the estimate.

    OLD and NEW are folders with the results of the program before and after the change.
    """
    import orjson

    from ffm.report.compare import compare as lay_out
    from ffm.report.formats import compare as formats
    from ffm.report.terminal.compare import compare_lines

    before, after = open_chosen(old), open_chosen(new)
    for folder, results in ((old, before), (new, after)):
        if results.document.not_measured:
            raise FfmError(
                f"{folder} is a measurement of some sites only (--sites), so it does not show which sites are gone or "
                "new. Compare measurements of all sites."
            )
        if results.document.portion is not None:
            raise FfmError(
                f"{folder} is a measurement of a portion of the run, so it does not show which sites are gone or new. "
                "Compare measurements of whole runs."
            )
    walls = [[open_chosen(folder).document.wall_s for folder in folders] for folders in (more_old, more_new)]
    view = lay_out(before, after, *walls)
    if as_json or kind == "json":
        click.echo(orjson.dumps(view, option=orjson.OPT_INDENT_2))
    elif kind == "sarif":
        click.echo(orjson.dumps(formats.sarif(view, checkout()), option=orjson.OPT_INDENT_2))
    elif kind == "github":
        click.echo(formats.github(view, checkout()), nl=False)
    elif kind == "junit":
        click.echo(formats.junit(view), nl=False)
    if as_json or kind != "terminal":
        return
    for line in compare_lines(view):
        click.echo(line)
