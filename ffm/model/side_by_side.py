"""Runs independent compiled passes over a long run in threads, since they release the interpreter lock."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ffm.model.compiled import PLAIN_ROWS

Result = TypeVar("Result")


def side_by_side(passes: Sequence[Callable[[], Result]], rows: int) -> list[Result]:
    """Return what some passes over this many rows return; short ones are not worth the threads."""
    threads = min(len(passes), len(os.sched_getaffinity(0)))
    if threads < 2 or rows <= PLAIN_ROWS:
        return [one() for one in passes]
    with ThreadPoolExecutor(threads) as pool:
        return [future.result() for future in [pool.submit(one) for one in passes]]
