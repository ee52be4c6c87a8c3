"""`ffm demo`: measure a bundled sample on the virtual GPU, from start to finish."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import click

from ffm.cli.options import RESULTS, results_target_option
from ffm.errors import FfmError


@click.command()
@click.option("--sample", default="als", show_default=True, help="Which bundled sample to measure.")
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How many times to run the sample and its corrected twin.",
)
@results_target_option("sample")
def demo(sample: str, rounds: int, results: Path | None) -> None:
    """Measure a bundled sample, show the report, and compare the estimate with what its corrected twin really saves."""
    from ffm.cli.run import run
    from ffm.vgpu.paths import UnknownSampleError
    from ffm.vgpu.paths import sample as sample_path

    program = sample_path(sample)
    try:
        twin = sample_path(f"{sample}_fixed")
    except UnknownSampleError as error:
        raise FfmError(
            f"the sample {sample} has no twin {sample}_fixed to compare it with: measure it by `ffm run --sample "
            f"{sample}`."
        ) from error
    folder = results or RESULTS / sample
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
    from ffm.results.stored import open_results

    bare, fixed = [], []
    for _ in range(rounds):
        bare.append(_seconds(program))
        fixed.append(_seconds(twin))
    before, after = statistics.median(bare), statistics.median(fixed)
    document = open_results(results).document
    everything = document.everything
    estimate = 0.0 if everything is None else everything.replay_s or everything.carry_s
    lines = outcome(twin.name, before, after, rounds, estimate)
    width = shutil.get_terminal_size().columns
    _say("\n".join(click.wrap_text(line, width) for line in lines))


def outcome(twin: str, before: float, after: float, rounds: int, estimate: float) -> list[str]:
    """Say what a corrected twin saves, given the seconds without and with its corrections, and what was estimated."""
    from ffm.report.numbers import percent

    runs = f"medians of {rounds} runs, in turn" if rounds > 1 else "one run of each"
    times = f"The corrected twin {twin} takes {after:.2f} s instead of {before:.2f} s ({runs})"
    estimated = f"ffm estimated {estimate:.2f} s for all problems together"
    saved = before - after
    if saved <= 0:
        return [
            f"{times}, so it saved nothing this time. Other programs on the machine can cause that: repeat the demo "
            f"when it is quiet, or with more rounds (--rounds {rounds + 2}).",
            f"{estimated}.",
        ]
    return [
        f"{times}: it saves {saved:.2f} s ({percent(100 * saved / before)}).",
        f"{estimated}, {100 * estimate / saved:.0f} % of that.",
    ]


def _seconds(program: Path) -> float:
    began = time.monotonic()
    subprocess.run([program], stdout=subprocess.DEVNULL, check=True)
    return time.monotonic() - began


def _say(text: str) -> None:
    click.echo(text)
    sys.stdout.flush()
