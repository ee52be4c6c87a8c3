"""The iterations that a program marked with `ffm.iteration` or with NVTX ranges."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.reader import Recording
from ffm.marks import PREFIX, RANGES_PREFIX
from ffm.results.columnar.columns import Columns
from ffm.results.documents.analysis import MarkedIterations
from ffm.results.documents.measured import Marked

MOST = 100_000
"""In a run. A library may mark millions of ranges internally; a loop has few iterations."""

_LINE = re.compile(r"(\d{1,10}) (\d{1,19}) (\d{1,19}) (.*)")


def marked_iterations(recordings: list[Recording], folder: Path) -> list[Marked]:
    """Return what the processes of a run marked, from the files in the folder of its recordings.

    A line that was cut off, because the process was killed, is left out, and so is what a thread marked that never
    called the driver.
    """
    found: list[Marked] = []
    for process, recording in enumerate(recordings):
        files = [folder / f"{prefix}{recording.process_id}" for prefix in (PREFIX, RANGES_PREFIX)]
        lines = [line for path in files if path.is_file() for line in _lines(path)]
        if not lines:
            continue
        kernel, own = recording.operations["thread_id"].tolist(), recording.operations["thread"].tolist()
        threads = dict(zip(kernel, own, strict=True))
        for line in lines:
            match = _LINE.fullmatch(line)
            if match is None or int(match[1]) not in threads:
                continue
            thread, begin, end = threads[int(match[1])], int(match[2]), int(match[3])
            if begin <= end:
                found.append(Marked(name=match[4], process=process, thread=thread, begin=begin, end=end))
    return sorted(_seldom(found), key=lambda one: one.begin)


def _seldom(marked: list[Marked]) -> list[Marked]:
    """Leave out the names that occur most often, if there are more marks than can be kept."""
    kept: set[str] = set()
    room = MOST
    for name, times in sorted(Counter(one.name for one in marked).items(), key=lambda item: (item[1], item[0])):
        if times <= room:
            kept.add(name)
            room -= times
    return [one for one in marked if one.name in kept]


def _lines(path: Path) -> list[str]:
    """Return a file's lines, without the zeros with which the parts of some are filled up."""
    return path.read_text(errors="replace").replace("\0", "").split("\n")


def rows_of_marked(marked: list[Marked], columns: Columns, thread: NDArray[np.int32]) -> list[MarkedIterations]:
    """Return the rows of marked iterations, by name and thread.

    Args:
        marked: in order of their start. One that begins before the last of its name and thread has ended is left out.
        columns: the operations of the run, by process, thread and start.
        thread: the thread of each row, numbered over all processes.
    """
    process, own, start = (columns[name] for name in ("process", "thread", "start"))
    groups: dict[tuple[str, int, int], list[Marked]] = {}
    for one in marked:
        before = groups.setdefault((one.name, one.process, one.thread), [])
        if not before or before[-1].end <= one.begin:
            before.append(one)
    found = []
    for (name, of_process, of_thread), iterations in groups.items():
        rows = np.flatnonzero((process == of_process) & (own == of_thread))
        if not len(rows):
            continue
        begin = rows[0] + np.searchsorted(start[rows], [one.begin for one in iterations])
        end = rows[0] + np.searchsorted(start[rows], [one.end for one in iterations])
        number = int(thread[rows[0]])
        found.append(MarkedIterations(name=name, thread=number, begin=begin.tolist(), end=end.tolist()))
    return found
