"""How fast does the collector hash what a program transfers, compared with only reading it?

    python benchmarks/hashing.py                 # 4 KiB to 512 MiB, 15 rounds

Compiles the collector's own hashing (`ffm/instrument/native/hashing/hashes.c`, XXH3-128; with its own flags) into a
library, together with a loop that only reads: 256-bit loads, eight at a time. Both process the same bytes in turn, in
one process and one thread; a small buffer several times, until a millisecond's worth of bytes was read. The goal is 80
% of the speed of reading memory (docs/architecture.md#goals), so it applies if the bytes come from memory: in buffers
larger than the caches.
Prints a table; writes `benchmarks/results/hashing.json` and a picture next to it.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from common.machine import description, undisturbed, watch_others
from common.pictures import new_figure
from rich.console import Console
from rich.table import Table

from ffm.driver.catalogue import load_catalogue
from ffm.driver.generate import include_text

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "hashing.json"
NATIVE = ROOT / "ffm" / "instrument" / "native"
HASHING = NATIVE / "hashing"
SEEN = tuple(f"-I{NATIVE / folder}" for folder in ("hashing", "calls", "record", "base"))
GOAL = 0.8
FLAGS = ("-std=c11", "-O2", "-D_GNU_SOURCE", "-fPIC", "-shared")
"""As in ffm/instrument/native/CMakeLists.txt."""

SIZES = (4 << 10, 64 << 10, 1 << 20, 16 << 20, 128 << 20, 512 << 20)
BEYOND_CACHES = 128 << 20
"""Buffers of at least this size are read from memory."""

WORTH_TIMING_BYTES = 16 << 20


def build(folder: Path) -> ctypes.CDLL:
    """Compile the library, with a newly generated collector header.

    Raises:
        subprocess.CalledProcessError: It does not compile.
    """
    (folder / "catalogue.inc").write_text(include_text(load_catalogue()))
    library = folder / "libhashing.so"
    sources = [Path(__file__).parent / "programs" / "hashing.c", HASHING / "hashes.c", HASHING / "hashes_avx2.c"]
    subprocess.run(["cc", *FLAGS, *SEEN, f"-I{folder}", "-o", library, *sources], check=True)
    loaded = ctypes.CDLL(str(library))
    for name in ("hash_once", "read_once"):
        getattr(loaded, name).argtypes = (ctypes.c_void_p, ctypes.c_uint64)
        getattr(loaded, name).restype = ctypes.c_uint64
    return loaded


def seconds(function: Any, address: int, size: int) -> float:
    """Return the time of one pass over a buffer."""
    times = max(1, WORTH_TIMING_BYTES // size)
    began = time.perf_counter()
    for _ in range(times):
        function(address, size)
    return (time.perf_counter() - began) / times


def measure(library: ctypes.CDLL, rounds: int) -> list[dict[str, Any]]:
    """Return one row per size: speeds in GB/s, medians over the rounds, and the ratio within each round."""
    # Anonymous pages of 4 KiB, like a program's buffers; written, so that they are not all the shared page of zeros.
    memory = mmap.mmap(-1, max(SIZES))
    buffer = np.frombuffer(memory, np.uint64)
    buffer[:] = np.arange(len(buffer), dtype=np.uint64)
    address = buffer.ctypes.data
    rows = []
    for size in SIZES:
        pairs = []
        for number in range(rounds + 1):
            pair = seconds(library.read_once, address, size), seconds(library.hash_once, address, size)
            if number > 0:
                pairs.append(pair)
        ratios = sorted(read / hashed for read, hashed in pairs)
        rows.append(
            {
                "bytes": size,
                "read_gb_s": size / median(read for read, _ in pairs) / 1e9,
                "hash_gb_s": size / median(hashed for _, hashed in pairs) / 1e9,
                "ratio": median(ratios),
                "ratio_quartiles": [ratios[len(ratios) // 4], ratios[3 * len(ratios) // 4]],
                "from_memory": size >= BEYOND_CACHES,
            }
        )
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Print the table."""
    table = Table(title="Hashing (XXH3-128) beside reading")
    for header in ("bytes", "read GB/s", "hash GB/s", "ratio", "quartiles", "goal met"):
        table.add_column(header, justify="right")
    for one in rows:
        low, high = one["ratio_quartiles"]
        met = ("yes" if one["ratio"] >= GOAL else "[bold red]no") if one["from_memory"] else "(cache)"
        table.add_row(
            f"{one['bytes']:,}",
            f"{one['read_gb_s']:.1f}",
            f"{one['hash_gb_s']:.1f}",
            f"{one['ratio']:.2f}",
            f"{low:.2f} to {high:.2f}",
            met,
        )
    Console(width=100).print(table)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw both speeds over the buffer's size; does nothing if matplotlib is missing."""
    figure = new_figure(7, 3.2)
    if figure is None:
        return
    axes = figure.add_subplot()
    sizes = [one["bytes"] / 2**20 for one in rows]
    axes.plot(sizes, [one["read_gb_s"] for one in rows], "o-", color="#555555", label="reading")
    axes.plot(sizes, [one["hash_gb_s"] for one in rows], "o-", color="#4477aa", label="hashing")
    axes.plot(sizes, [GOAL * one["read_gb_s"] for one in rows], "--", color="#c0392b", label="goal beyond the caches")
    axes.set_xscale("log")
    axes.set_ylim(0)
    axes.set_xlabel("MiB")
    axes.set_ylabel("GB/s")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    with tempfile.TemporaryDirectory(prefix="ffm-hashing-") as folder, watch_others() as others:
        library = build(Path(folder))
        with undisturbed():
            rows = measure(library, arguments.rounds)
    show(rows)
    print(others)
    RESULTS.parent.mkdir(exist_ok=True)
    head = {**description(arguments, others), "goal": GOAL}
    RESULTS.write_text(json.dumps({**head, "rows": rows}, indent=2) + "\n")
    draw(rows, RESULTS.with_suffix(".svg"))


if __name__ == "__main__":
    main()
