"""Records in the shape that Diogenes wrote, made up: a program with one loop; and its published folder if present."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

PUBLISHED = Path(__file__).parents[2].parent / "shared" / "reference" / "diogenes-cumf_als"
"""Diogenes's own files of cumf_als, which are not part of this project."""

needs_published_files = pytest.mark.skipif(
    not (PUBLISHED / "combined_stacks.json").is_file(),
    reason=f"Diogenes's published files of cumf_als are not beside the checkout ({PUBLISHED})",
)


def frame(position: int, function: str, line: int = 0, library: str = "/opt/app/solver") -> dict[str, Any]:
    return {
        "position": position,
        "funcname": function,
        "filename": "/tmp/tmpxft_00021508_00000000-5_solve.cudafe1.cpp" if line else "solver",
        "linenum": line,
        "libname": library,
        "liboffset": 4096 * position + line,
        "md5sum": "975340ccf868c130008d10089a261383",
        "compare": "",
    }


def record(number: int, call: str, line: int, **fields: Any) -> dict[str, Any]:
    """A record of `main → solve<float>(int) → call`; times in seconds over all its occurrences."""
    content = {
        "GlobalID": number,
        "tf_id": number,
        "count": 1,
        "total_time": 0.0,
        "SyncOnlyTime": 0.0,
        "SyncOnlyCount": 1,
        "DeltaTime": 0.0,
        "DeltaCount": 1,
        "Transfer Count": 0,
        "Transfer Time": 0.0,
        "TransferCollisions": [],
        "TransferOverwrites": 0,
        "Duplicates": 0,
        "Sync Uses": 0,
        "Use Delay": 0.0,
        "FICount": 0,
        "Dependencies": [],
        "Stack": [frame(0, "main"), frame(1, "void solve<float>(int)", line), frame(2, call), frame(3, "internal")],
    }
    count = fields.get("count", 1)
    return content | {"SyncOnlyCount": count, "DeltaCount": count} | fields


def loop_records() -> list[dict[str, Any]]:
    """Ten iterations of five operations, between a first and a last one.

    By Diogenes's rules its sequence starts at line 20, the second operation of the loop, and ends before line 40.
    """
    loop = {"count": 10, "DeltaCount": 10}
    return [
        record(1, "cudaMallocHost", 1, total_time=2.0, DeltaTime=1.0),
        record(2, "cudaMemcpy", 5, total_time=1.0, SyncOnlyTime=0.5, DeltaTime=1.0, **{"Transfer Count": 1}),
        record(3, "cudaFree", 10, total_time=3.0, SyncOnlyTime=1.0, DeltaTime=2.0, **loop),
        record(4, "cudaMemcpy", 20, total_time=6.0, SyncOnlyTime=4.0, DeltaTime=1.0,
               **loop, **{"Transfer Count": 10, "TransferCollisions": [4] * 9}),
        record(5, "cudaFree", 30, total_time=5.0, SyncOnlyTime=3.0, DeltaTime=4.0, Dependencies=[3], **loop),
        record(6, "cudaDeviceSynchronize", 40, total_time=8.0, SyncOnlyTime=7.5, DeltaTime=2.0,
               **loop, **{"Sync Uses": 10}),
        record(7, "cudaDeviceReset", 50, total_time=1.0, SyncOnlyTime=0.0, DeltaCount=0),
    ]  # fmt: skip


def write_folder(folder: Path, records: list[dict[str, Any]], wall_s: str = "100.0\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "combined_stacks.json").write_text(json.dumps(records))
    (folder / "ttime.txt").write_text(wall_s)
    return folder
