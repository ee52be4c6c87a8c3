"""Reads of clocks: whose they are, and with which others they can be compared (docs/architecture.md#synchronizations).

The stack of a read shows whose it is. Functions that only pass on the time, such as those of OpenMP, are skipped: the
read belongs to their caller.
"""

from __future__ import annotations

import os
import re
from enum import IntEnum
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.instrument.recording.stacks import RecordedStack
from ffm.model.necessity.program import Clocks, Comparison


class Reader(IntEnum):
    """Who reads a clock."""

    OTHER = 0
    """A library's for its own purposes, such as a deadline or a log, or the interpreter's."""
    UNKNOWN = 1
    """A library's that could be a part of the program, or reads for one of another language."""
    PROGRAM = 2


HANDS_ON = re.compile(
    r"(libffm_|frida|linux-vdso|\[vdso\]|ld-linux|libc[.-]|libpthread[.-]|librt[.-]|libdl[.-]|libstdc\+\+|libc\+\+|"
    r"libgomp|libomp|libiomp|libgfortran|libmpi|libpmpi|libmpich|libboost_chrono|libboost_timer|libpapi|libbenchmark|"
    r"libnvbench|libcelero|libhayai)"
)
"""Files with functions that read a clock for their caller, and the instruments. Libraries for benchmarks count as
their callers, for which they measure.
"""

INTERPRETER = re.compile(r"(lib)?python\d")

_PYTHON_CLOCK = re.compile(r"(_datetime|time)[.]")
"""Modules of the interpreter, if they are files of their own, with which scripts read clocks."""

INSTALLED = re.compile(r"/(usr|lib|lib32|lib64|opt|nix|snap)/|.*/(site|dist)-packages/|.*/lib/python\d|.*conda\d?/")
"""Where systems and package managers put libraries."""

_VIRTUAL_MACHINE = re.compile(r"lib(jvm|ruby|lua|luajit|perl|R|mono|coreclr|julia|octinterp|tcl|guile|php|node)[-.\d]")
"""Libraries that run programs of other languages, for which they read clocks as well as for themselves."""

_STANDARD_LIBRARY = re.compile(r"<frozen |.*/lib/python\d[^/]*/(?!site-packages|dist-packages)")
_MEASURES = re.compile(r"<timeit|.*/(timeit|benchmark|pytest_benchmark|pyperf)[/.]")
"""Python files that measure for their caller."""


_MARKS = ("ffm", "marks.py")
"""The end of the file whose functions mark iterations for ffm; their reads are not the program's."""


def clocks_of(recording: Recording, wait_ends: NDArray[np.int64]) -> Clocks:
    """Return the reads of clocks that the program may compare with others, and those that only separate such reads.

    `wait_ends` are the times at which operations that wait ended, sorted.
    """
    read = recording.accesses[recording.accesses["kind"] == constant("FFM_ACCESS_CLOCK")]
    readers = _Readers(recording)
    asked = (read["flags"] & constant("FFM_ACCESS_ASKED")) != 0
    kinds, which = np.unique(2 * read["stack"].astype(np.int64) + asked, return_inverse=True)
    reader = np.array([readers.of(kind // 2, bool(kind % 2)) for kind in kinds.tolist()], np.uint8)[which]
    read, reader = read[reader != Reader.OTHER], reader[reader != Reader.OTHER]
    time = read["time"].astype(np.int64)
    early = (read["flags"] & constant("FFM_ACCESS_EARLY")) != 0
    counter = read["address"] != 0
    comparison = np.minimum(reader, np.maximum(_partner(time, reader, wait_ends), np.where(counter, reader, 0)))
    return Clocks(
        thread=read["operation_thread"][~early].astype(np.int64),
        time=time[~early],
        comparison=_COMPARISON[comparison[~early]],
        counter=counter[~early],
    )


_COMPARISON = np.array([Comparison.NOT_COMPARED, Comparison.MAYBE_COMPARED, Comparison.COMPARED], np.uint8)
"""For each `Reader`: the less certain one of both reads."""


def _partner(time: NDArray[np.int64], reader: NDArray[np.uint8], wait_ends: NDArray[np.int64]) -> NDArray[np.uint8]:
    """Return the reader of the most certain other read that each read can be compared with; `Reader.OTHER` if there is
    none.

    A read can be compared with any before it, and with one after it if something waits in between.
    """
    partner = np.full(len(time), Reader.OTHER, np.uint8)
    next_wait = np.append(wait_ends, np.iinfo(np.int64).max)[np.searchsorted(wait_ends, time, side="right")]
    for certain in (Reader.UNKNOWN, Reader.PROGRAM):
        of = time[reader >= certain]
        if len(of):
            partner[(of.min() < time) | (of.max() > next_wait)] = certain
    return partner


class _Readers:
    """Finds out who read a clock, by the call stack of the read."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def of(self, stack: int, asked: bool) -> Reader:
        """Return who read the clock with that stack. `asked`: an interpreter may have read it for a script."""
        stacks = self._recording.stacks
        return self._reader(stacks[stack], asked) if stack < len(stacks) else Reader.UNKNOWN

    def _reader(self, stack: RecordedStack, asked: bool) -> Reader:
        interpreting = False
        for module, _ in stack.frames:
            path = "" if module is None else self._recording.modules[module].path
            name = PurePath(path).name
            if not name or HANDS_ON.match(name):
                continue
            if _PYTHON_CLOCK.match(name) or (INTERPRETER.match(name) and asked):
                return reader_in_python(stack)
            if INTERPRETER.match(name):  # its own, unless one of those modules called it
                interpreting = True
                continue
            if interpreting:
                return Reader.OTHER
            if os.path.realpath(path) == os.path.realpath(self._recording.executable):
                return Reader.PROGRAM
            foreign = INSTALLED.match(path) and not _VIRTUAL_MACHINE.match(name)
            return Reader.OTHER if foreign else Reader.UNKNOWN
        return Reader.OTHER if interpreting else Reader.UNKNOWN


def reader_in_python(stack: RecordedStack) -> Reader:
    """Return whose call it is if an interpreter makes it for a script, by the file of its innermost frame."""
    file = next((frame.file for frame in stack.python if frame.file), None)
    if file is None:
        return Reader.UNKNOWN
    if PurePath(file).parts[-2:] == _MARKS:
        return Reader.OTHER
    if _MEASURES.match(file):
        return Reader.PROGRAM
    return Reader.OTHER if _STANDARD_LIBRARY.match(file) or INSTALLED.match(file) else Reader.PROGRAM
