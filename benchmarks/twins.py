"""What the benchmarks of samples and their twins share: which samples, and rows of a result for each twin."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

SAMPLES = Path(__file__).parents[1] / "ffm" / "vgpu" / "samples"


def sample_parser(description: str | None) -> argparse.ArgumentParser:
    """A command line with `--sample`; without it, `samples` gives all."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = sorted(path.name.removesuffix(".truth.toml") for path in SAMPLES.glob("*.truth.toml"))
    parser.add_argument("--sample", dest="samples", action="append", choices=names, help="default: all")
    parser.set_defaults(names=names)
    return parser


def write_rows(path: Path, head: dict[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Write the rows, and keep those that the file has of other twins; return all, by twin."""
    kept = json.loads(path.read_text())["rows"] if path.exists() else []
    measured = {row["twin"] for row in rows}
    everything = sorted([row for row in kept if row["twin"] not in measured] + rows, key=lambda row: str(row["twin"]))
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({**head, "rows": everything}, indent=2) + "\n")
    return everything
