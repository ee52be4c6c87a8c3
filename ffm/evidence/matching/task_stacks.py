"""Which call stacks belong to the same task of OpenMP or TBB.

Their runtimes run a task wherever they find the time: on a worker, on the thread that waits for the tasks, or within
the call that creates one. The runtime's own frames, and all frames outside them, then differ from run to run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from ffm.results.documents.stacks import Module, Stack

RUNTIME = re.compile(r"lib(gomp|omp|iomp5|tbb)(-[0-9a-f]+)?\.so")
"""The files of such runtimes, including those in Python wheels."""

OFFLOADING = re.compile(r"lib(gomp-plugin|omptarget)")
"""Files of such runtimes that call the driver themselves: no task is there."""

Task = tuple[tuple[str, int], ...]


def numbered_tasks(*runs: tuple[Sequence[Stack], Sequence[Module]]) -> list[NDArray[np.int64]]:
    """Return, for each of some runs, the number of the task of each of its stacks, the same in all runs; -1 for a stack
    of no task.
    """
    numbers: dict[Task, int] = {}
    found = []
    for stacks, modules in runs:
        names = [PurePath(module.path).name for module in modules]
        runtimes = {number for number, name in enumerate(names) if RUNTIME.match(name)}
        offloading = {number for number, name in enumerate(names) if OFFLOADING.match(name)}
        tasks = [_task(stack, modules, runtimes, offloading) if runtimes else None for stack in stacks]
        found.append(
            np.array([-1 if task is None else numbers.setdefault(task, len(numbers)) for task in tasks], np.int64)
        )
    return found


def _task(stack: Stack, modules: Sequence[Module], runtimes: set[int], offloading: set[int]) -> Task | None:
    """Return the frames of the innermost task of a stack, without those of the runtime that runs it."""
    frames: list[tuple[str, int]] = []
    for frame in stack.frames:
        if frame.module in runtimes:
            return tuple(frames) if frames else None
        if frame.module in offloading:
            return None
        frames.append((modules[frame.module].build_id or modules[frame.module].path, frame.offset))
    return None
