"""What the benchmarks of samples and their twins share: the samples, their command lines, and the rows of results."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ffm.errors import FfmError
from ffm.vgpu.paths import sample as path_of

SAMPLES = Path(__file__).parents[2] / "ffm" / "vgpu" / "samples"
NAMES = sorted(path.name.removesuffix(".truth.toml") for path in SAMPLES.glob("*.truth.toml"))

ARGUMENTS: dict[str, list[str]] = {"als": ["40"]}
"""Arguments of the samples that would otherwise run for long."""

Row = dict[str, Any]


def sample_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a command line with `--sample`; without it, `samples` is None, which means all for `measure_each`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", dest="samples", action="append", choices=NAMES, help="default: all")
    return parser


def command_of(program: str, name: str) -> list[str]:
    """Return the command line of the sample `name` or of one of its twins, in one process."""
    return [str(path_of(program)), *ARGUMENTS.get(name, [])]


def truth_of(name: str) -> dict[str, list[dict[str, Any]]]:
    """Return the call sites that each twin of a sample corrects."""
    entries = tomllib.loads((SAMPLES / f"{name}.truth.toml").read_text())["call_site"]
    twins: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        if entry.get("twin"):
            twins.setdefault(entry["twin"], []).append(entry)
    return twins


def measure_each(
    samples: list[str] | None, measure: Callable[[str, Path], list[Row]], show: Callable[[list[Row]], None]
) -> tuple[list[Row], list[str]]:
    """Measure each sample in a separate folder and show its rows; return all rows, and the samples that failed."""
    rows: list[Row] = []
    failed: list[str] = []
    for name in samples or NAMES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                measured = measure(name, Path(folder))
            except (FfmError, subprocess.CalledProcessError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed.append(name)
                continue
        show(measured)
        rows += measured
    return rows, failed


def write_rows(path: Path, head: dict[str, Any], rows: list[Row]) -> list[Row]:
    """Write the rows, each with the head that it was measured under; return them with those kept, by twin.

    Rows of other twins in the file are kept, unless they do not say what they were measured under.
    """
    content = json.loads(path.read_text()) if path.exists() else {"rows": []}
    measured = {row["twin"] for row in rows}
    kept = [row for row in content["rows"] if row["twin"] not in measured and "measured_under" in row]
    everything = sorted([*kept, *({**row, "measured_under": head} for row in rows)], key=lambda row: str(row["twin"]))
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"rows": everything}, indent=2) + "\n")
    return everything


def exit_status(failed: list[str]) -> int:
    """Report which samples failed; return the script's exit status."""
    if failed:
        print(f"not measured: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0
