"""Ends the recordings of a program that keeps running, after a time or on an interrupt. The program is then asked to
end, or left alone.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ffm.instrument.recording.progress import Progress, finish_recordings, progress_of

LOOK_EACH_S = 0.05
POLITE_S = 5.0
"""How long a program may take to end after SIGTERM; then it is killed."""

SLOWEST = 10
"""A program may take this many times its measuring time until it makes its first call and, where more of it
is observed, until it has made the calls of the run before."""

Why = Literal["time", "interruption"]


@dataclass(frozen=True, slots=True)
class Lasting:
    """How long a run is measured, from the first driver call that it records.

    A run after the traced one is over earlier if each process has recorded as many operations as there.
    """

    seconds: float
    operations: tuple[int, ...] | None = None
    """Of each process of the traced run, in the order of `read_recordings`; None to go by time."""

    def is_over(self, recordings: Sequence[Progress], first_ns: int, elapsed: float, now: float) -> bool:
        """Return whether the run has been measured long enough.

        Args:
            recordings: How far its processes are.
            first_ns: When the first driver call began that they recorded, on their clock; 0 if there was none.
            elapsed: Seconds since the program was started.
            now: Seconds on the clock of the recordings.
        """
        first = first_ns / 1e9
        if not first:
            return elapsed > SLOWEST * self.seconds
        if now - first >= self.seconds or self.operations is None:
            return now - first >= self.seconds
        reached = [one.operations for one in recordings]
        return len(reached) >= len(self.operations) and all(
            got >= wanted for got, wanted in zip(reached, self.operations, strict=False)
        )


class Cut:
    """The end of a run that ffm decides on. Its methods may be called from several threads."""

    def __init__(
        self, folder: Path, ask_to_end: Callable[[], None], kill: Callable[[], None], leave: int | None = None
    ) -> None:
        """`folder` is where the recordings are; the functions send signals to all processes of the program.

        With `leave`, an eventfd, no signals are sent: it becomes readable when the program is to be left alone.
        """
        self._folder, self._leave = folder, leave
        self._ask_to_end, self._kill = ask_to_end, kill
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.why: Why | None = None
        self.at = 0.0
        """When it was (`time.monotonic`), if `why` says that it was."""

    def __enter__(self) -> Cut:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop looking after the program, which has ended."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def after(self, lasting: Lasting) -> None:
        """Cut the run once it has lasted long enough."""
        self._begin(lambda: self._watch(lasting, time.monotonic()))

    def interrupt(self) -> bool:
        """Cut the run because ffm was told to end; return false if there is nothing recorded that could be kept."""
        if self.why is None and not any(one.operations for one in progress_of(self._folder)):
            return False
        self._cut("interruption")
        return True

    def _begin(self, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name="ffm-cut", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _watch(self, lasting: Lasting, began: float) -> None:
        first_ns = 0  # a recording need not keep it
        while not self._over.wait(LOOK_EACH_S):
            now, recordings = time.monotonic(), progress_of(self._folder)
            first_ns = first_ns or min((one.first for one in recordings if one.first), default=0)
            if lasting.is_over(recordings, first_ns, now - began, now):
                self._cut("time")
                return

    def _cut(self, why: Why) -> None:
        with self._lock:
            if self.why is not None:
                return
            self.why, self.at = why, time.monotonic()
            finish_recordings(self._folder, time.monotonic_ns())
            if self._leave is not None:
                os.eventfd_write(self._leave, 1)
                return
            self._ask_to_end()
            self._begin(self._kill_late)

    def _kill_late(self) -> None:
        """End what does not end when asked, and the recordings of processes that come late."""
        end = time.monotonic() + POLITE_S
        while not self._over.wait(LOOK_EACH_S):
            finish_recordings(self._folder, time.monotonic_ns())
            if time.monotonic() > end:
                self._kill()
                return
