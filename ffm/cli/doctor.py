"""`ffm doctor`: check what this machine's driver, Frida and permissions allow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click


@click.command()
@click.option(
    "--driver",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Examine this driver library instead of the one that a program would load.",
)
@click.option("--probe", is_flag=True, help="Find the driver's internal wait function now, and verify it.")
@click.option("--every-export", is_flag=True, help="Also try to hook the functions that no stage needs.")
@click.option("--json", "as_json", is_flag=True, help="Print all findings as JSON.")
def doctor(driver: Path | None, probe: bool, every_export: bool, as_json: bool) -> None:
    """Check what this machine allows: driver, Frida, permissions, wait function, and which functions can be hooked.

    Every function is actually hooked, in a child process that loads the driver. The exit status is 1 if something
    required for measuring is missing.
    """
    from ffm.cli.doctor_screen import as_json_bytes, print_diagnosis
    from ffm.doctor.diagnosis import diagnose

    with _progress() as tell:
        diagnosis = diagnose(driver, probe=probe, every_export=every_export, tell=tell)
    if as_json:
        click.echo(as_json_bytes(diagnosis))
    else:
        print_diagnosis(diagnosis)
    sys.exit(0 if diagnosis.ready else 1)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show the current step on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        yield lambda text: progress.update(task, description=text)
