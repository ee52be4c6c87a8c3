"""`ffm init`: create a folder with the workflow, its profiles and a file of settings."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from ffm.errors import FfmError
from ffm.whole_file import SHARED, write_whole
from ffm.workflow import CONFIGS, PROFILES, PROJECT

FILES = {
    Path("Snakefile"): PROJECT,
    Path("configs/program.yaml"): CONFIGS / "program.yaml",
    **{Path("profiles", path.parent.name, path.name): path for path in sorted(PROFILES.glob("*/config.yaml"))},
}
"""Each file of such a folder, and the packaged file that it is a copy of."""


@click.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default=Path())
@click.option("--force", is_flag=True, help="Overwrite existing files.")
def init(folder: Path, force: bool) -> None:
    """Prepare FOLDER (default: the current one) for Snakemake: Snakefile, profiles, a file of settings.

    The Snakefile includes the rules of the installed ffm. The profiles run them on this machine (`default`), or as
    jobs on a Slurm cluster (`slurm`).
    """
    present = [str(folder / name) for name in FILES if (folder / name).exists()]
    if present and not force:
        raise FfmError(f"{', '.join(present)} would be overwritten; allow that with --force, or name another folder.")
    for name, packaged in FILES.items():
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            write_whole(target, packaged.read_bytes(), SHARED)
        except OSError as error:
            raise FfmError(f"{target} cannot be written: {error.strerror}. Name another folder.") from error
        click.echo(f"wrote {target}")
    there = "" if folder == Path() else f"cd {shlex.quote(str(folder))} && "
    click.echo(f"Measure: {there}snakemake --config app=./program")
    click.echo("     or: edit configs/program.yaml, then snakemake --configfile configs/program.yaml")
