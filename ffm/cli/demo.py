"""`ffm demo`: the whole way on the bundled sample, on the virtual GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click

from ffm.stages.errors import FfmError

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: the workflow lies in it, not in the package."""


@click.command()
@click.option("--sample", default="als", show_default=True, help="Which bundled sample to measure.")
def demo(sample: str) -> None:
    """Measure a bundled sample on the virtual GPU with the workflow, then show the report."""
    from ffm.vgpu.paths import sample as sample_path

    workflow = ROOT / "Snakefile"
    if not workflow.exists():
        raise FfmError(f"{workflow} does not exist: the demo runs in a checkout of ffm.")
    program = sample_path(sample)
    shown = os.path.relpath(program) if program.is_relative_to(ROOT) else str(program)
    click.echo(f"$ snakemake --config app={shown}")
    sys.stdout.flush()
    if subprocess.run(["snakemake", "--forceall", "--config", f"app={shown}"], cwd=ROOT, check=False).returncode:
        raise FfmError("the measurement failed; the messages above say why.")
    click.echo("$ ffm report")
    sys.stdout.flush()
    subprocess.run(["ffm", "report", "--results", str(ROOT / "results" / program.name)], cwd=ROOT, check=True)
