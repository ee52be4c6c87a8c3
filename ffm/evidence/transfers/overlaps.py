"""Which earlier event touched any of the same addresses: boxes on a line, in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.model.compiled import run

Integers = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Spans:
    """Addresses from `begin` to before `end`, each at a time. Columns of one length."""

    begin: NDArray[np.uint64]
    end: NDArray[np.uint64]
    time: NDArray[np.int64]


def latest_overlapping(rows: Spans, events: Spans) -> NDArray[np.int64]:
    """Return for each row the last event strictly before its time that has an address in common with it; -1 for none.

    Of events at one time, the last counts. The answers are indices into the events, of shape (rows,). O((n + m) log m)
    for n rows and m events.
    """
    found = np.full(len(rows.time), -1, np.int64)
    if not len(events.time) or not len(found):
        return found
    bounds = np.unique(np.concatenate([events.begin, events.end]))
    places = max(len(bounds) - 1, 1)
    first = np.maximum(np.searchsorted(bounds, rows.begin, side="right") - 1, 0)
    behind = np.where(rows.begin < rows.end, np.minimum(np.searchsorted(bounds, rows.end), places), 0)
    order, event = (np.argsort(spans.time, kind="stable") for spans in (rows, events))
    until = np.searchsorted(events.time[event], rows.time[order])
    latest, inside = np.full((2, 2 * places), -1, np.int64)
    at = [np.searchsorted(bounds, bound[event]) for bound in (events.begin, events.end)]
    run(_find_overlapping, len(found) + len(event), *at, order, first, behind, until, latest, inside, found)
    answered = found >= 0
    found[answered] = event[found[answered]]
    return found


def _find_overlapping(
    begin: Integers,
    end: Integers,
    order: Integers,
    first: Integers,
    behind: Integers,
    until: Integers,
    latest: Integers,
    inside: Integers,
    found: Integers,
) -> None:
    """Find the last overlapping event of each row, of events in order of time.

    Events reach from one of the events' bounds to another, and rows from the place between two bounds `first` to before
    `behind`; they come in the `order` of their times, and only the first `until` of the events count. The places are
    the leaves of a binary tree: `latest` is the last event that covers all of a node, and `inside` the last that covers
    any of it.
    """
    leaves = len(latest) // 2
    passed = 0
    for turn in range(len(order)):
        while passed < until[turn]:
            left, right = begin[passed] + leaves, end[passed] + leaves
            if left < right:
                for edge in (left, right - 1):
                    while edge > 0:
                        inside[edge] = passed
                        edge >>= 1
                while left < right:
                    if left & 1:
                        latest[left] = inside[left] = passed
                        left += 1
                    if right & 1:
                        right -= 1
                        latest[right] = inside[right] = passed
                    left >>= 1
                    right >>= 1
            passed += 1
        row = order[turn]
        left, right = first[row] + leaves, behind[row] + leaves
        if left >= right:
            continue
        last = -1
        for edge in (left, right - 1):
            while edge > 0:
                last = max(last, latest[edge])
                edge >>= 1
        while left < right:
            if left & 1:
                last = max(last, inside[left])
                left += 1
            if right & 1:
                right -= 1
                last = max(last, inside[right])
            left >>= 1
            right >>= 1
        found[row] = last
