"""The iterations that a program marked with `ffm.iteration`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.reader import Recording
from ffm.marks import PREFIX
from ffm.results.analysis_document import MarkedIterations
from ffm.results.columns import Columns
from ffm.results.documents import Marked

_LINE = re.compile(r"(\d{1,10}) (\d{1,19}) (\d{1,19}) (.*)")


def marked_iterations(recordings: list[Recording], folder: Path) -> list[Marked]:
    """Return what the processes of a run marked, from the files in the folder of its recordings.

    A line that was cut off, because the process was killed, is left out, and so is what a thread marked that never
    called the driver.
    """
    found: list[Marked] = []
    for process, recording in enumerate(recordings):
        path = folder / f"{PREFIX}{recording.process_id}"
        if not path.is_file():
            continue
        kernel, own = recording.operations["thread_id"].tolist(), recording.operations["thread"].tolist()
        threads = dict(zip(kernel, own, strict=True))
        for line in path.read_text(errors="replace").splitlines():
            match = _LINE.fullmatch(line)
            if match is None or int(match[1]) not in threads:
                continue
            thread, begin, end = threads[int(match[1])], int(match[2]), int(match[3])
            if begin <= end:
                found.append(Marked(name=match[4], process=process, thread=thread, begin=begin, end=end))
    return sorted(found, key=lambda one: one.begin)


def rows_of_marked(
    marked: list[Marked], columns: Columns, order: NDArray[np.int64], thread: NDArray[np.int32]
) -> list[MarkedIterations]:
    """Return the rows of marked iterations, by name and thread.

    Args:
        marked: in order of their begin. One that begins before the last of its name and thread has ended is left out.
        columns: the operations of the run.
        order: by process, thread and start.
        thread: the thread of each row in that order, numbered over all processes.
    """
    process, own, start = (columns[name][order] for name in ("process", "thread", "start"))
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
