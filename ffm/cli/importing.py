"""`ffm import`: convert the results of other tools so that the viewing commands can read them."""

from __future__ import annotations

from pathlib import Path

import click

from ffm.cli.options import RESULTS


@click.group()
def import_results() -> None:
    """Import the measurements of another tool."""


@import_results.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--results",
    "results_folder",
    type=click.Path(path_type=Path),
    help="Where to write. [default: ./results/<folder name without `diogenes-`>]",
)
def diogenes(folder: Path, results_folder: Path | None) -> None:
    """Import FOLDER, which contains Diogenes's `combined_stacks.json` and `ttime.txt`."""
    from ffm.sources.diogenes import import_diogenes

    target = results_folder or RESULTS / folder.resolve().name.removeprefix("diogenes-")
    analysis = import_diogenes(folder, target)
    click.echo(
        f"Imported {len(analysis.sites)} sites of {analysis.application} into {target}. "
        f"`ffm report --results {target}` shows them."
    )
