"""Answers that work is over: a program may rely on what it asks after a wait (docs/architecture.md#synchronizations).

A program that polls is prepared for either answer. A program that asks after a wait, and never got the answer "not
ready" at this place, may take the answer for granted.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import dropwhile, groupby, takewhile
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from ffm.driver.vocabulary import Awaits, Kind
from ffm.evidence.calls import calls_where
from ffm.evidence.clock_reads import HANDS_ON, INSTALLED, INTERPRETER, Reader, reader_in_python
from ffm.evidence.program_order import NOT_READY, polled_until_done
from ffm.instrument.recording.reader import Recording
from ffm.instrument.recording.stacks import RecordedStack
from ffm.model.codes import is_one_of
from ffm.model.necessity.program import NO_USES, Action, Operations, Role, Uses
from ffm.results.columnar.columns import Columns

DRIVER_OR_RUNTIME = re.compile(r"libcuda[.-]|libcudart")
"""The driver and the runtime, which ask on behalf of their callers."""

_THIN = re.compile(r".*/(cupy_backends/cuda/api|cuda/bindings)/|.*/libffi[.-]")
"""Files of packages with nothing but the driver's and the runtime's functions, for other files to call."""


def answer_uses(columns: Columns, operations: Operations, recording: Recording) -> Uses:
    """Return the queries whether a stream or an event is done, as uses of what they ask about.

    `columns` and `operations` describe the same operations of the recording's process, sorted by start.
    """
    asks = calls_where(columns["function"], lambda function: function.kind is Kind.QUERY)
    if not asks.any():
        return NO_USES
    polled = polled_until_done(columns, asks, operations.judged)
    unready = np.unique(columns["stack"][asks & (columns["result"] == NOT_READY)])
    taken = asks & (columns["result"] == 0) & ~polled & ~np.isin(columns["stack"], unready)
    rows = np.flatnonzero(taken)
    rows = rows[_by_program(columns, rows, recording)] if len(rows) else rows
    of_events = calls_where(columns["function"][rows], lambda function: function.awaits is Awaits.EVENT)
    works = is_one_of(operations.action, (Action.WORK, Action.HOLD))
    last = np.where(
        of_events,
        last_before(rows, operations.event, operations.action == Action.RECORD),
        last_before(rows, operations.stream, works),
    )
    rows, last = rows[last >= 0], last[last >= 0]
    return Uses(
        operation=last,
        time=columns["start"][rows].astype(np.int64),
        role=np.full(len(rows), Role.ANSWER, np.uint8),
        thread=columns["thread"][rows].astype(np.int64),
    )


def recorded_stacks(columns: Columns, rows: NDArray[np.int64], recording: Recording) -> NDArray[np.int64]:
    """Return the numbers of some operations' stacks among the recording's stacks."""
    made = recording.operations
    key = made["thread"].astype(np.int64) << 40 | made["number"].astype(np.int64)
    order = np.argsort(key)
    wanted = columns["thread"][rows].astype(np.int64) << 40 | columns["number"][rows].astype(np.int64)
    stacks: NDArray[np.int64] = made["stack"][order[np.searchsorted(key[order], wanted)]].astype(np.int64)
    return stacks


def last_before(rows: NDArray[np.int64], number: NDArray[np.int64], among: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the last row `among` those before each of `rows` that has the same number; -1 for none."""
    if not len(rows) or not among.any():
        return np.full(len(rows), -1, np.int64)
    count = len(number)
    keys = np.sort(number[among] * count + np.flatnonzero(among))
    place = np.searchsorted(keys, number[rows] * count + rows) - 1
    key = keys[np.maximum(place, 0)]
    return np.where((place >= 0) & (number[rows] >= 0) & (key // count == number[rows]), key % count, -1)


def _by_program(columns: Columns, rows: NDArray[np.int64], recording: Recording) -> NDArray[np.bool_]:
    """Return which calls the program makes, or a library that could be a part of it."""
    distinct, which = np.unique(recorded_stacks(columns, rows, recording), return_inverse=True)
    known = recording.stacks
    whose = [_asker(known[stack], recording) if stack < len(known) else Reader.UNKNOWN for stack in distinct.tolist()]
    return np.array([reader is not Reader.OTHER for reader in whose], np.bool_)[which.reshape(-1)]


def _asker(stack: RecordedStack, recording: Recording) -> Reader:
    """Return whose query it is. A library that a script calls directly asks for the script, and may do so through one
    function of a library beside it.
    """
    paths = ["" if module is None else recording.modules[module].path for module, _ in stack.frames]
    callers = [path for path in paths if not _hands_on(path)]
    libraries = [path for path, _ in groupby(takewhile(lambda path: not _interprets(path), callers))]
    if libraries and os.path.realpath(libraries[0]) == os.path.realpath(recording.executable):
        return Reader.PROGRAM
    if libraries and not INSTALLED.match(libraries[0]):
        return Reader.UNKNOWN
    if not any(map(_interprets, callers)):
        return Reader.OTHER if libraries else Reader.UNKNOWN
    beside = len(libraries) == 2 and len({PurePath(path).parent for path in libraries}) == 1
    direct = len(libraries) < 2 or (beside and callers[1] == libraries[1])
    return _asker_in_python(stack) if direct else Reader.OTHER


def _hands_on(path: str) -> bool:
    """Return whether a file's functions ask for their callers; so does code that is in no file."""
    name = PurePath(path).name
    return not name or any(each.match(name) for each in (HANDS_ON, DRIVER_OR_RUNTIME)) or bool(_THIN.match(path))


def _interprets(path: str) -> bool:
    return bool(INTERPRETER.match(PurePath(path).name))


def _asker_in_python(stack: RecordedStack) -> Reader:
    """Return whose query it is if Python code asks through a library.

    A package's function may ask for its caller, as `torch.cuda.Event.query` does: the file that calls it tells.
    """
    frames = [frame for frame in stack.python if frame.file]
    asker = reader_in_python(stack)
    if asker is not Reader.OTHER:
        return asker
    callers = list(dropwhile(lambda frame: frame.file == frames[0].file, frames))
    return reader_in_python(replace(stack, python=callers)) if callers else asker
