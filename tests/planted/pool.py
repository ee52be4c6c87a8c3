"""Measures planted cases, several at a time, each in a separate process.

Verdicts do not depend on the speed of a run, so runs may overlap here; where times are measured they may not.
"""

from __future__ import annotations

import functools
import gc
import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from types import TracebackType
from unittest import mock

from ffm.errors import FfmError
from ffm.results.memory import heap
from ffm.stages import tracing
from ffm.stages.measure import Watch
from ffm.symbols import symbolizer
from ffm.symbols.locations import SourceFrame
from tests.planted.building import Programs
from tests.planted.labels import Case
from tests.planted.measuring import Answer, answers_for

GIVE_WAY = 4
"""Niceness: concurrent proofs need programs that are not kept from their processor for long."""


KEEP_MEMORY = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
"""Variables that make glibc keep freed memory for what is allocated next, as long as the process lives.

Each time Frida attaches, it allocates and frees twice the size of its agent, 36 MB. To get these pages from the system
takes a third of the processor time of attaching. Frida's thread begins when Frida is imported, and would have an arena
of its own, which gives memory back, if `mallopt` were called after that. Documents are read into 2 GiB, of which what
they do not fill is freed at once, and below the threshold.
"""


class UnmeasuredError(Exception):
    """A stage of ffm failed on a case; the message is its sentence, or names an unexpected error."""


class Measurements:
    """The answers for many cases, computed in the background from the start."""

    def __init__(self, cases: Iterable[Case], programs: Programs, scratch: Path, watches: Sequence[Watch]) -> None:
        """Start measuring the cases with each of the watches, with results below `scratch`."""
        # A case waits for its program a third of the time, so one more than there are cores keeps them busy.
        self._pool = ProcessPoolExecutor(
            (os.cpu_count() or 1) + 1, multiprocessing.get_context("spawn"), initializer=_begin
        )
        with mock.patch.dict(os.environ, KEEP_MEMORY):
            self._answers: dict[str, Future[list[Answer]]] = {
                case.name: self._pool.submit(_measure, case, programs, scratch / case.name, watches) for case in cases
            }

    def answers(self, case: Case) -> list[Answer]:
        """Wait for a case.

        Raises:
            UnmeasuredError: A stage failed.
        """
        return self._answers[case.name].result()

    def __enter__(self) -> Measurements:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)


def _begin() -> None:
    """Start a process that measures: what is the same in all runs of all programs is determined once."""
    for name in KEEP_MEMORY:
        del os.environ[name]  # not for the programs
    heap._library = lambda: None  # nothing changes these settings
    os.nice(GIVE_WAY)
    gc.freeze()
    os.fsync = lambda _: None  # no power fails here, and hundreds of results would be waited for
    tracing.wait_latency = functools.cache(tracing.wait_latency)
    symbolizer.symbolize = _remembering(symbolizer.symbolize)


Symbolize = Callable[[str, Sequence[tuple[Path, int]]], list[list[SourceFrame]]]


def _remembering(symbolize: Symbolize) -> Symbolize:
    known: dict[tuple[Path, int], list[SourceFrame]] = {}

    def look_up(program: str, places: Sequence[tuple[Path, int]]) -> list[list[SourceFrame]]:
        unknown = [place for place in dict.fromkeys(places) if place not in known]
        if unknown:
            known.update(zip(unknown, symbolize(program, unknown), strict=True))
        return [known[place] for place in places]

    return look_up


def _measure(case: Case, programs: Programs, results: Path, watches: Sequence[Watch]) -> list[Answer]:
    try:
        return answers_for(case, programs, results, watches)
    except FfmError as error:
        raise UnmeasuredError(str(error)) from None
    except Exception as error:  # one failing case must not hide the others
        raise UnmeasuredError(f"ffm raised {type(error).__name__}: {error}") from error
