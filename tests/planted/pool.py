"""Measures planted cases, several at a time, each in a process of its own.

Verdicts do not depend on how fast a run is, so that runs may overlap here; where times are measured they may not.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from types import TracebackType

from ffm.stages.errors import FfmError
from ffm.stages.measure import Watch
from tests.planted.building import Programs
from tests.planted.labels import Case
from tests.planted.measuring import Answer, answers_for

GIVE_WAY = 4
"""Niceness: what is proved meanwhile depends on a program not being kept from its processor for long."""


class UnmeasuredError(Exception):
    """A stage of ffm failed on a case; the message is its sentence, or names an error that it did not expect."""


class Measurements:
    """The answers for many cases, under way from the beginning."""

    def __init__(self, cases: Iterable[Case], programs: Programs, scratch: Path, watch: Watch) -> None:
        """Begin to measure the cases, with results below `scratch`."""
        # A case waits for its program a third of the time: one more than there are cores keeps them busy.
        self._pool = ProcessPoolExecutor(
            (os.cpu_count() or 1) + 1, multiprocessing.get_context("spawn"), initializer=os.nice, initargs=(GIVE_WAY,)
        )
        self._answers: dict[str, Future[list[Answer]]] = {
            case.name: self._pool.submit(_measure, case, programs, scratch / case.name, watch) for case in cases
        }

    def answers(self, case: Case) -> list[Answer]:
        """Wait for a case.

        Raises:
            UnmeasuredError: a stage failed.
        """
        return self._answers[case.name].result()

    def __enter__(self) -> Measurements:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)


def _measure(case: Case, programs: Programs, results: Path, watch: Watch) -> list[Answer]:
    try:
        return answers_for(case, programs, results, watch)
    except FfmError as error:
        raise UnmeasuredError(str(error)) from None
    except Exception as error:  # one case that ffm fails on must not hide the others
        raise UnmeasuredError(f"ffm raised {type(error).__name__}: {error}") from error
