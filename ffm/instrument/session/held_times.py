"""How long the processes of a program were held for instrumentation, which is not the program's own time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Held:
    """What must be subtracted from a run's time, in seconds."""

    seconds: float
    beside_s: float
    """The part during which another process that uses the driver was free. If that process did not wait for the held
    ones, the program took up to this much longer than it seems.
    """


@dataclass(frozen=True, slots=True)
class _Stay:
    process: int
    time: Interval
    free: frozenset[int]
    """Processes that were alive at its end and were not held."""


class HeldTimes:
    """Notes when each process was held; shared by the threads of a run."""

    def __init__(self, alive: Callable[[], set[int]]) -> None:
        """`alive` returns the living processes of the program."""
        self._alive = alive
        self._lock = threading.Lock()
        self._now: list[int] = []
        self._stays: list[_Stay] = []

    @contextmanager
    def holding(self, process: int) -> Iterator[None]:
        """Measure the time in which a process waits for us."""
        began = time.monotonic()
        with self._lock:
            self._now.append(process)
        try:
            yield
        finally:
            self.add(process, began)
            with self._lock:
                self._now.remove(process)

    def add(self, process: int, began: float) -> None:
        """Note that a process was held from `began` (`time.monotonic`) until now."""
        alive = self._alive()
        with self._lock:
            free = frozenset(alive - {process, *self._now})
            self._stays.append(_Stay(process, (began, time.monotonic()), free))

    def of_run(self, root: int, users: set[int], run: Interval) -> Held:
        """Return how long a run was held: `root` is the program's first process, `users` those that use the driver.

        `run` is when it began and ended: a run that is cut can have ended while a process was still held.

        If the first process uses the driver, its time is the run's, and the others are held in parallel. If it only
        launches them (`mpirun`, a script), it waits for them, and they mostly wait for each other: ranks are started
        one after another and begin by joining the rest. So the clock stops while any of them is held.
        """
        with self._lock:
            stays = [stay for stay in self._stays if root not in users or stay.process == root]
        return Held(
            seconds=_length([stay.time for stay in stays], run),
            beside_s=_length([stay.time for stay in stays if stay.free & users - {root}], run),
        )


def _length(intervals: Sequence[Interval], within: Interval) -> float:
    """Return the length of the part of the union of intervals that is within another one."""
    total, (reached, last) = 0.0, within
    for start, end in sorted(intervals):
        total += max(0.0, min(end, last) - max(start, reached))
        reached = max(reached, end)
    return total
