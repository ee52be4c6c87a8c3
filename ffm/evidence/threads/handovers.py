"""Which thread's actions come after another's, by the semaphores, barriers and joins that were recorded.

Only what holds for every schedule of the threads counts. So a semaphore orders threads only if a single thread posts to
it, not in a signal handler, which may run at any time, and if no other process can post: the k-th time that another
thread takes from it then comes after at least k posts. A barrier orders threads only if no more threads come to it than
it waits for: then each arrives for the k-th time before any of them leaves for the k-th time. Both must have been
observed to the end of the run. Locks order nothing, because chance decides who gets one first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.necessity.program import Handovers

EVER = np.iinfo(np.int64).max
NEVER = np.iinfo(np.int64).min

KINDS = ("INITIAL", "POST", "TAKE", "JOIN", "BARRIER", "ARRIVE", "LEAVE")

MOST = constant("FFM_MOST_HANDOVERS")

UNBELIEVED = -1
"""In place of the number of threads that post to a semaphore."""

Known = NDArray[np.int64]
"""For each thread that calls the driver, up to when what it did is known; shape (callers,)."""


def handovers_of(recording: Recording, threads: int, callers: int) -> Handovers:
    """Return what each thread knows about the threads that call the driver, with a row whenever it learns more.

    `callers` is one more than the number of the last thread that calls the driver. A program may start thousands of
    others, and nothing depends on when these did something.
    """
    kinds = {constant(f"FFM_ACCESS_{name}"): name for name in KINDS}
    rows = recording.accesses[np.isin(recording.accesses["kind"], list(kinds))]
    rows = rows[np.argsort(rows["time"], kind="stable")]
    all_seen = len(rows) < MOST
    semaphores = _Semaphores(_posters(rows[rows["kind"] == constant("FFM_ACCESS_POST")]))
    barriers = _Barriers(_comers(rows))
    known = np.full((threads, callers), NEVER, np.int64)
    learned: list[tuple[int, int, Known]] = []
    columns = (rows[name].tolist() for name in ("kind", "operation_thread", "time", "address", "operation"))
    for number, thread, time, address, operation in zip(*columns, strict=True):
        if thread >= threads:
            continue
        kind = kinds[number]
        now = known[thread].copy()
        if thread < callers:
            now[thread] = time
        if kind == "INITIAL":
            semaphores.begin(address, operation)
        elif kind == "POST":
            semaphores.posts.setdefault(address, []).append(now)
        elif kind == "BARRIER":
            barriers.begin(address, operation)
        elif kind == "ARRIVE":
            barriers.arrive(address, thread, now)
        else:
            if kind == "TAKE":
                received = semaphores.take(address, thread) if all_seen else []
            elif kind == "LEAVE":
                received = barriers.leave(address, thread) if all_seen else []
            else:
                received = [known[address]] if address < threads else []
            for state in received:
                known[thread] = np.maximum(known[thread], state)
            if kind == "JOIN" and address < callers:
                known[thread, address] = EVER
            learned.append((thread, time, known[thread].copy()))
    return Handovers(
        thread=np.array([thread for thread, _, _ in learned], np.int64),
        time=np.array([time for _, time, _ in learned], np.int64),
        known=np.array([state for _, _, state in learned], np.int64).reshape(len(learned), callers),
    )


@dataclass(slots=True)
class _Semaphores:
    """What the poster of each semaphore knew at each post."""

    posters: dict[int, int]
    posts: dict[int, list[Known]] = field(default_factory=dict)
    initial: dict[int, int] = field(default_factory=dict)
    taken: dict[tuple[int, int], int] = field(default_factory=dict)

    def begin(self, address: int, value: int) -> None:
        self.initial[address], self.posts[address] = value, []
        self.taken = {key: count for key, count in self.taken.items() if key[0] != address}

    def take(self, address: int, thread: int) -> list[Known]:
        """Return what a thread learns by taking from a semaphore once more."""
        count = self.taken[address, thread] = self.taken.get((address, thread), 0) + 1
        place = count - self.initial.get(address, EVER) - 1
        posts = self.posts.get(address, [])
        return [posts[place]] if self.posters.get(address) == 1 and 0 <= place < len(posts) else []


@dataclass(slots=True)
class _Barriers:
    """What each thread knew whenever it came to a barrier."""

    comers: dict[tuple[int, int], set[int]]
    """By address, and how many times a barrier was made there: the threads that ever come."""
    made: dict[int, int] = field(default_factory=dict)
    size: dict[int, int] = field(default_factory=dict)
    arrivals: dict[int, dict[int, list[Known]]] = field(default_factory=dict)
    left: dict[tuple[int, int], int] = field(default_factory=dict)

    def begin(self, address: int, threads: int) -> None:
        self.size[address], self.arrivals[address] = threads, {}
        self.made[address] = self.made.get(address, 0) + 1
        self.left = {key: count for key, count in self.left.items() if key[0] != address}

    def arrive(self, address: int, thread: int, known: Known) -> None:
        self.arrivals.setdefault(address, {}).setdefault(thread, []).append(known)

    def leave(self, address: int, thread: int) -> list[Known]:
        """Return what a thread learns by leaving a barrier: what all threads knew when they arrived as many times.

        Nothing if more threads ever come than it waits for: which of them pass together is chance.
        """
        count = self.left[address, thread] = self.left.get((address, thread), 0) + 1
        came = self.arrivals.get(address, {})
        if len(self.comers.get((address, self.made.get(address, 0)), ())) != self.size.get(address):
            return []
        return [states[count - 1] for states in came.values() if len(states) >= count]


def _comers(rows: NDArray[Any]) -> dict[tuple[int, int], set[int]]:
    """Return the threads that come to each barrier, by its address and how many were made there."""
    made: dict[int, int] = {}
    found: dict[tuple[int, int], set[int]] = {}
    concerned = rows[np.isin(rows["kind"], [constant("FFM_ACCESS_BARRIER"), constant("FFM_ACCESS_ARRIVE")])]
    columns = (concerned[name].tolist() for name in ("kind", "operation_thread", "address"))
    for kind, thread, address in zip(*columns, strict=True):
        if kind == constant("FFM_ACCESS_BARRIER"):
            made[address] = made.get(address, 0) + 1
        else:
            found.setdefault((address, made.get(address, 0)), set()).add(thread)
    return found


def _posters(posts: NDArray[Any]) -> dict[int, int]:
    """Return how many threads post to each semaphore; `UNBELIEVED` for one that a signal handler posts."""
    pairs = np.unique(np.column_stack([posts["address"], posts["operation_thread"].astype(np.uint64)]), axis=0)
    addresses, counts = np.unique(pairs[:, 0], return_counts=True)
    interrupting = posts["address"][posts["operation"] == constant("FFM_POSTED_UNSEEN")]
    found = dict(zip(addresses.tolist(), counts.tolist(), strict=True))
    return found | dict.fromkeys(interrupting.tolist(), UNBELIEVED)
