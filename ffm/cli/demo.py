"""`ffm demo`: measure a bundled sample on the virtual GPU, from start to finish."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import click


@click.command()
@click.option("--sample", default="als", show_default=True, help="Which bundled sample to measure.")
@click.option("--rounds", default=3, show_default=True, help="How many times to run the sample and its corrected twin.")
@click.option(
    "--results",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where the results go. [default: results/<sample>]",
)
def demo(sample: str, rounds: int, results: Path | None) -> None:
    """Measure a bundled sample, show the report, and compare the estimate with what its corrected twin really saves."""
    from ffm.cli.run import run
    from ffm.vgpu.paths import sample as sample_path

    program, twin = sample_path(sample), sample_path(f"{sample}_fixed")
    folder = results or Path("results") / sample
    _say(f"$ ffm run --sample {sample}")
    run.main(
        ["--force", "--sample", sample, "--timeout", str(LIMIT_S), "--results", str(folder)], standalone_mode=False
    )
    _say("")
    _compare(program, twin, folder, rounds)


LIMIT_S = 60
"""Seconds after which a run of a sample is stopped: several times what the longest takes."""


def _compare(program: Path, twin: Path, results: Path, rounds: int) -> None:
    """Run the sample and its twin in turn; print the measured saving and the estimate for all sequences."""
    from ffm.report.numbers import percent
    from ffm.results.stored import open_results

    bare, fixed = [], []
    for _ in range(rounds):
        bare.append(_seconds(program))
        fixed.append(_seconds(twin))
    before, after = statistics.median(bare), statistics.median(fixed)
    saved = before - after
    document = open_results(results).document
    everything = document.everything
    estimate = 0.0 if everything is None else everything.replay_s or everything.carry_s
    lines = [
        f"The corrected twin {twin.name} takes {after:.2f} s instead of {before:.2f} s (medians of {rounds} runs, in "
        f"turn): it saves {saved:.2f} s ({percent(100 * saved / before)}).",
        f"ffm estimated {estimate:.2f} s for all problems together"
        + (f", {100 * estimate / saved:.0f} % of that." if saved > 0 else "."),
    ]
    width = shutil.get_terminal_size().columns
    _say("\n".join(click.wrap_text(line, width) for line in lines))


def _seconds(program: Path) -> float:
    began = time.monotonic()
    subprocess.run([program], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def _say(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()
