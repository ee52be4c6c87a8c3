"""How late the threads of one run were, and whether that was chance: found once for all of its fixes."""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork
from ffm.model.estimators.lateness import (
    NEVER_NS,
    Starved,
    beyond_work,
    late_at_once,
    late_from,
    late_limit,
    sharing_processors,
    starved,
)
from ffm.model.gpu_times.timelines import Times
from ffm.model.lock_order import lock_waited
from ffm.model.timeline import NANOSECONDS_IN_SECOND, Timeline


class LateRun:
    """What is late in a run.

    `latency`, shape (n,), is for how long each wait lasted beyond the GPU's work in nanoseconds, negative where nothing
    was waited for; `usual_ns` is the run's usual one.
    """

    def __init__(self, timeline: Timeline, work: DeviceWork, latency: Times, usual_ns: int) -> None:
        self._timeline, self._work, self._latency = timeline, work, latency
        self._usual_ns = usual_ns
        self.limit_ns = late_limit(usual_ns)
        """The latency from which on a wait is late."""

    @functools.cached_property
    def never(self) -> NDArray[np.int64]:
        """No wait of any site is late by chance, shape (sites,)."""
        return np.full(int(self._timeline.site.max(initial=-1)) + 1, NEVER_NS)

    @functools.cached_property
    def by_chance(self) -> NDArray[np.int64]:
        """From which latency on a wait of each site is late by chance, shape (sites,)."""
        limits = late_from(self._timeline.site, self._latency, self._usual_ns)
        if self._shares.any():  # it is no chance there
            limits[self._timeline.site[self._shares[self._work.process_of_thread[self._timeline.thread]]]] = NEVER_NS
        return limits

    @functools.cached_property
    def never_sharing(self) -> NDArray[np.int64]:
        """No thread of any process is late because others have the processors, shape (processes,)."""
        return np.full(self._work.processes, NEVER_NS)

    @functools.cached_property
    def by_sharing(self) -> NDArray[np.int64]:
        """From which latency on a wait of each process is late because others run, shape (processes,)."""
        return np.where(self._shares, self.limit_ns, NEVER_NS)

    @functools.cached_property
    def starved(self) -> Starved:
        """How much longer each row's call took, and how much later its thread came to its next one, as it had no
        processor, shape (n,), or (0,) if no threads share processors.
        """
        return self._starved if self._shares.any() else Starved(np.zeros(0, np.int64), np.zeros(0, np.int64))

    def handing_over_s(self, rows: NDArray[np.integer]) -> float:
        """Return how long threads that share processors take to hand them over in some rows: of the time in which
        nothing of the program gets on, the part that these rows have in all lateness.
        """
        if not self._shares.any():
            return 0.0
        of_row = self._work.process_of_thread[self._timeline.thread]
        processes = self._work.processes
        changed = np.bincount(of_row[rows], weights=self._late[rows], minlength=processes)
        late = np.bincount(of_row, weights=self._late, minlength=processes)
        part = np.where(self._shares, changed / np.maximum(late, 1), 0.0)
        return float((part * self._at_once).max()) / NANOSECONDS_IN_SECOND

    @functools.cached_property
    def _shares(self) -> NDArray[np.bool_]:
        if self._work.processes == len(self._work.process_of_thread):
            return np.zeros(self._work.processes, np.bool_)
        return sharing_processors(self._timeline, self._work, self._latency, self._usual_ns, self._starved)

    @functools.cached_property
    def _starved(self) -> Starved:
        elsewhere = lock_waited(self._timeline, self._work.locks)
        return starved(self._timeline, self._work, self._late, self.limit_ns, elsewhere)

    @functools.cached_property
    def _late(self) -> NDArray[np.int64]:
        """How late each row's wait was, shape (n,)."""
        beyond = beyond_work(self._latency)
        return np.where(beyond >= self.limit_ns, beyond - self._usual_ns, 0)

    @functools.cached_property
    def _at_once(self) -> NDArray[np.int64]:
        return late_at_once(self._timeline, self._work, self._late)
