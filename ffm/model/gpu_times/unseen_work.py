"""How long the GPU may have taken for work that no wait shows by itself: part of `ffm.model.gpu_times.inference`.

A kernel of a few microseconds is over before the next call returns, and a wait that follows shows only that it is over.
And a call that reads back a few bytes waits much longer than the GPU takes to copy them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model.copies import WORTH_TIMING_BYTES
from ffm.model.device import DeviceWork
from ffm.model.gpu_times.timelines import Times
from ffm.model.grouping import numbered, sorted_within

FEW = 0.05
"""This share of the segments of the same work may be shorter than what counts as the shortest: part of their work was
done before they seem to start.
"""


def brief_transfers(segment: NDArray[np.int32], size: NDArray[np.int64], work: DeviceWork) -> NDArray[np.bool_]:
    """Return which segments consist of one transfer of a few bytes, shape (segments,).

    The call that waits for it does more than wait: it also moves the bytes to or from a buffer of the driver. How much
    of its time that takes, between none and all of it, is unknown.
    """
    brief = np.zeros(len(size), bool)
    brief[segment[(segment >= 0) & _few_bytes(work)]] = True
    brief &= size == 1
    return brief


def guess_unseen(
    site: NDArray[np.int32],
    work: DeviceWork,
    room: NDArray[np.int64],
    rows: NDArray[np.int64],
    possible: NDArray[np.int64],
    known: Times,
) -> NDArray[np.int64]:
    """Return nanoseconds for work that no wait shows, in the shape of `rows`.

    Half of what is possible is the guess with the smallest maximum error. A GPU that keeps up has done its work before
    the next comes, every time that the same work is enqueued. If that says little, because the CPU was busy elsewhere
    for long, the work is taken to last no longer than most of what something waited for.

    Args:
        site: all rows' call sites.
        work: what they do on the GPU.
        room: how long each could take without keeping the next one waiting (`find_segments`); -1 if unknown.
        rows: those that no wait shows, ascending.
        possible: how long each of these could take at most, as far as the waits tell.
        known: how long all rows take that waits show; -1 for the others.
    """
    guess = possible // 2
    bounded = np.flatnonzero(room >= 0)
    if len(bounded):
        equal, _ = numbered(site[bounded], work.copied[bounded])
        counts = np.bincount(equal)
        first = np.concatenate(([0], np.cumsum(counts)[:-1]))
        few = (FEW * counts).astype(np.int64)
        least = sorted_within(equal, room[bounded], len(counts), few)[first + few]
        held = np.flatnonzero(room[rows] >= 0)
        place = np.searchsorted(bounded, rows[held])
        guess[held] = np.minimum(guess[held], least[equal[place]] // 2)
    shown = (known >= 0) & ~_few_bytes(work)
    return np.minimum(guess, int(np.median(known[shown]))) if shown.any() else guess


def _few_bytes(work: DeviceWork) -> NDArray[np.bool_]:
    return (work.copied > 0) & (work.copied < WORTH_TIMING_BYTES)
