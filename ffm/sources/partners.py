"""How threads and processes wait for each other, by the rules of CASITA (Dietrich 2019, 3.3.2).

Those that come early to a barrier or a collective operation wait until the last one comes; a receiver that comes early
waits until its sender comes. A thread that requests a lock that another one holds waits until it is released. The time
that the call takes after that is its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Encounters, Role

_BOTH = Role.COMES | Role.WAITS


@dataclass(frozen=True, slots=True)
class Partners:
    """For each call, shape (calls,), the call of another thread whose start it came after (-1: none)."""

    awaits: NDArray[np.int64]
    """Of a call that releases a lock, the one of its own thread that acquired it."""
    waited: NDArray[np.int64]
    """How long it waited for that, in nanoseconds."""
    encounters: Encounters
    """All that a call could have waited for; rows are calls."""


class PartnerFinder:
    """Collects who waited for whom; of several in one call, the one that it waited for longest."""

    def __init__(self, start: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        self._start, self._end = start, end
        self._awaits = np.full(len(start), -1, np.int64)
        self._waited = np.zeros(len(start), np.int64)
        self._entries: list[Encounters] = []
        self._count = 0

    def meet(self, group: NDArray[np.int64], call: NDArray[np.int64]) -> None:
        """Let the calls of each group wait for the last of them to start. Arguments have one entry for each call."""
        order = np.lexsort((self._start[call], group))
        groups, calls = group[order], call[order]
        ends = np.flatnonzero(np.append(groups[1:] != groups[:-1], True)) if len(groups) else np.zeros(0, np.int64)
        last = calls[ends[np.searchsorted(ends, np.arange(len(calls)))]] if len(calls) else calls
        self._wait(calls, last)
        self._meet(np.searchsorted(ends, np.arange(len(calls))), calls, np.full(len(calls), _BOTH, np.uint8))

    def exchange(self, send: NDArray[np.int64], receive: NDArray[np.int64]) -> None:
        """Let receiving calls wait for sending ones that begin later, and sending calls for receiving ones that begin
        while they last. Arguments have one entry for each message.
        """
        early = self._start[receive] < self._start[send]
        self._wait(receive[early], send[early])
        late = (self._start[send] < self._start[receive]) & (self._start[receive] < self._end[send])
        self._wait(send[late], receive[late])
        sends, receives = (np.where(late, _BOTH, role).astype(np.uint8) for role in (Role.COMES, Role.WAITS))
        self._pair(send, sends, receive, receives)

    def follow(self, group: NDArray[np.int64], call: NDArray[np.int64], leads: NDArray[np.bool_]) -> None:
        """Let the calls of each group come after the one that leads it, without waiting: the threads did not work."""
        leader = np.full(int(group.max(initial=-1)) + 1, -1, np.int64)
        leader[group[leads]] = call[leads]
        led = np.flatnonzero(~leads & (call >= 0) & (leader[group] >= 0))
        led = led[self._start[leader[group[led]]] <= self._start[call[led]]]
        self._awaits[call[led]] = leader[group[led]]
        self._pair(leader[group[led]], Role.COMES, call[led], Role.FOLLOWS)

    def locks(self, key: NDArray[np.int64], call: NDArray[np.int64], releases: NDArray[np.bool_]) -> None:
        """Let a call that acquires a lock wait until the one that held it before releases it.

        Args:
            key: of each call, the process, the lock, and how often the lock was acquired before; shape (calls, 3).
            call: the calls.
            releases: which of them release the lock; the others acquire it.
        """
        acquired, released = (_first_of_each(key[rows], call[rows]) for rows in (~releases, releases))
        _, before, after = _common(released[0] + (0, 0, 1), acquired[0])
        self._wait(acquired[1][after], released[1][before])
        _, held, freed = _common(acquired[0], released[0])
        self._awaits[released[1][freed]] = acquired[1][held]
        self._pair(released[1][before], Role.COMES, acquired[1][after], Role.WAITS)

    def _wait(self, call: NDArray[np.int64], late: NDArray[np.int64]) -> None:
        waited = np.minimum(self._start[late], self._end[call]) - self._start[call]
        order = np.argsort(waited, kind="stable")  # the last assignment stays
        call, late, waited = call[order], late[order], waited[order]
        longer = (waited > 0) & (waited > self._waited[call]) & (call != late)
        self._awaits[call[longer]] = late[longer]
        self._waited[call[longer]] = waited[longer]

    def _pair(
        self,
        one: NDArray[np.int64],
        role: NDArray[np.uint8] | Role,
        other: NDArray[np.int64],
        role_of_other: NDArray[np.uint8] | Role,
    ) -> None:
        """Let calls meet two by two."""
        roles = np.empty(2 * len(one), np.uint8)
        roles[::2], roles[1::2] = role, role_of_other
        self._meet(np.repeat(np.arange(len(one)), 2), np.column_stack((one, other)).reshape(-1), roles)

    def _meet(self, number: NDArray[np.int64], call: NDArray[np.int64], role: NDArray[np.uint8]) -> None:
        """Add encounters, which have numbers of their own from 0."""
        self._entries.append(Encounters(self._count + number, call, role))
        self._count += int(number.max(initial=-1)) + 1

    def found(self) -> Partners:
        """Return who waited for whom."""
        entries = [Encounters.none(), *self._entries]
        number, row, role = (
            np.concatenate([getattr(one, name) for one in entries]) for name in ("number", "row", "role")
        )
        return Partners(self._awaits, self._waited, Encounters(number, row, role))


def messages(send: list[NDArray[np.int64]], receive: list[NDArray[np.int64]]) -> tuple[NDArray[np.int64], ...]:
    """Pair messages in their order: rows that agree in all columns but the order. Returns the numbers of the pairs'
    sends and receives.

    Args:
        send: columns of the sends; for MPI, sender, receiver, communicator and tag.
        receive: the same columns of the receives.
    """
    keys = np.concatenate((np.column_stack(send), np.column_stack(receive)))
    _, key = np.unique(keys, axis=0, return_inverse=True)
    key = key.reshape(-1)
    sends, receives = key[: len(send[0])], key[len(send[0]) :]
    one, other = (np.column_stack((part, _place_in_group(part))) for part in (sends, receives))
    both, first, second = _common(one, other)
    assert len(first) == len(second) == both
    return first, second


def _place_in_group(group: NDArray[np.int64]) -> NDArray[np.int64]:
    order = np.argsort(group, kind="stable")
    begins = np.searchsorted(group[order], group[order])
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - begins
    return place


def _common(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[int, NDArray[np.int64], NDArray[np.int64]]:
    """Return how many rows are in both, and where in each; rows are distinct."""
    _, key = np.unique(np.concatenate((one, other)), axis=0, return_inverse=True)
    key = key.reshape(-1)
    found, first, second = np.intersect1d(key[: len(one)], key[len(one) :], return_indices=True)
    return len(found), first, second


def _first_of_each(key: NDArray[np.int64], call: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return distinct keys and the first call of each."""
    distinct, first = np.unique(key, axis=0, return_index=True)
    return distinct, call[first]


def occurrences(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how often each entry's group occurred before it."""
    return _place_in_group(group)


def last_launches(launched: NDArray[np.int64], began: NDArray[np.int64]) -> NDArray[np.int64]:
    """Pair work with launches of its stream, both in order of time, where some records may be lost.

    The last work was launched by the last launch before it, the work before by the last launch before that, and so on.
    As long as nothing is lost, that pairs them in order. What is lost then shifts no further than to the next time that
    the CPU waited.

    Returns:
        For each piece of work, the number of its launch; -1 if there is none.
    """
    found = np.full(len(began), -1, np.int64)
    free = len(launched) - 1
    latest = np.searchsorted(launched, began, side="right") - 1
    for place in range(len(began) - 1, -1, -1):
        free = min(free, int(latest[place]))
        if free < 0:
            break
        found[place] = free
        free -= 1
    return found
