"""`ffm demo`: measure a bundled sample on the virtual GPU, from start to finish."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import click

from ffm.stages.errors import FfmError

ROOT = Path(__file__).resolve().parents[2]
"""The checkout: the workflow lies in it, not in the package."""


@click.command()
@click.option("--sample", default="als", show_default=True, help="Which bundled sample to measure.")
@click.option("--rounds", default=3, show_default=True, help="How many times to run the sample and its corrected twin.")
def demo(sample: str, rounds: int) -> None:
    """Measure a bundled sample, show the report, and compare the estimate with what its corrected twin really saves."""
    from ffm.vgpu.paths import NotBuiltError
    from ffm.vgpu.paths import sample as sample_path

    workflow = ROOT / "Snakefile"
    if not workflow.exists():
        raise FfmError(f"{workflow} does not exist: the demo runs in a checkout of ffm.")
    try:
        program, twin = sample_path(sample), sample_path(f"{sample}_fixed")
    except NotBuiltError as error:
        raise FfmError(str(error)) from error
    settings = os.path.relpath(ROOT / "configs" / f"{sample}.yaml", ROOT)
    _say(f"$ snakemake --configfile {settings}")
    snakemake = [sys.executable, "-m", "snakemake", "--forceall", "--configfile", settings]
    if subprocess.run(snakemake, cwd=ROOT, check=False).returncode:
        raise FfmError("the measurement failed; see the messages above.")
    results = ROOT / "results" / program.name
    _say("$ ffm report")
    subprocess.run([sys.executable, "-m", "ffm", "report", "--results", str(results)], cwd=ROOT, check=True)
    _compare(program, twin, results, rounds)


def _compare(program: Path, twin: Path, results: Path, rounds: int) -> None:
    """Run the sample and its twin in turn; print the measured saving and the estimate for all sequences."""
    from ffm.stages.results import open_results

    bare, fixed = [], []
    for _ in range(rounds):
        bare.append(_seconds(program))
        fixed.append(_seconds(twin))
    before, after = statistics.median(bare), statistics.median(fixed)
    saved = before - after
    document = open_results(results).document
    everything = document.everything
    estimate = 0.0 if everything is None else everything.replay_s or everything.carry_s
    _say(
        f"The corrected twin {twin.name} takes {after:.2f} s instead of {before:.2f} s (medians of {rounds}, in turn): "
        f"it saves {saved:.2f} s, {saved / before:.1%} of the run.\n"
        f"Estimated for all problems together: {estimate:.2f} s"
        + (f", {estimate / saved:.0%} of that." if saved > 0 else ".")
    )


def _seconds(program: Path) -> float:
    began = time.monotonic()
    subprocess.run([program], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def _say(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()
