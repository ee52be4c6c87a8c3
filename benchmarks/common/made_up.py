"""A made-up timeline of any length, for benchmarks of the model: a loop of synchronizing copies, frees and waits.

It imitates cumf_als: launches and allocations between, several threads, waits from a heavy-tailed distribution, some
iterations with fewer problems.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.timeline import Kind, Problem, Timeline

BODY = [Kind.TRANSFER, Kind.LAUNCH, Kind.FREE, Kind.ALLOCATION, Kind.LAUNCH, Kind.SYNCHRONIZATION, Kind.FREE] * 5
SITES = 1000


def make_timeline(rows: int, threads: int = 8) -> Timeline:
    """Make up a timeline; the same for the same size. Filled in blocks, so that it takes little more than its size."""
    columns: dict[str, NDArray[Any]] = {
        "thread": np.empty(rows, np.int32),
        "start": np.empty(rows, np.int64),
        "duration": np.empty(rows, np.int64),
        "wait": np.empty(rows, np.int64),
        "gap": np.empty(rows, np.int64),
        "site": np.empty(rows, np.int32),
        "kind": np.empty(rows, np.uint8),
        "problem": np.empty(rows, np.uint8),
        "first_use": np.zeros(rows, np.int64),
        "occurrences": np.ones(rows, np.int64),
    }
    generator = np.random.default_rng(rows)
    clock = 0
    for begin in range(0, rows, 1_000_000):
        block = make_block(generator, np.arange(begin, min(begin + 1_000_000, rows)), -(-rows // threads))
        ends = clock + np.cumsum(block["duration"] + block["gap"])
        block["start"] = ends - block["duration"] - block["gap"]
        clock = int(ends[-1])
        for name, column in block.items():
            columns[name][begin : begin + len(column)] = column
    return Timeline(**columns)


def make_block(generator: np.random.Generator, row: NDArray[np.int64], a_thread: int) -> dict[str, NDArray[Any]]:
    """Make up some rows: the loop's body over and over, at other call stacks after every thousand iterations."""
    body = np.array(BODY, np.uint8)
    place = row % len(body)
    kind = body[place]
    waits = (kind != Kind.LAUNCH) & (kind != Kind.ALLOCATION)
    wait = np.where(waits, (generator.pareto(1.5, len(row)) * 20_000).astype(np.int64) + 1, 0)
    problem = np.where(waits & (place % 16 != 5), Problem.UNNECESSARY_SYNCHRONIZATION, 0).astype(np.uint8)
    problem[(kind == Kind.TRANSFER) & (generator.random(len(row)) < 0.9)] |= np.uint8(Problem.UNNECESSARY_TRANSFER)
    problem[waits & (generator.random(len(row)) < 0.001)] = Problem.NONE
    return {
        "thread": row // a_thread,
        "duration": wait + generator.integers(500, 20_000, len(row)),
        "wait": wait,
        "gap": generator.integers(100, 30_000, len(row)),
        "site": place + len(body) * (row // (len(body) * 1000) % (SITES // len(body))),
        "kind": kind,
        "problem": problem,
    }
