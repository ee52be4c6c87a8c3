"""Which thread is ordered after what another one did, by semaphores and joins that were recorded.

Only what holds however the threads are scheduled counts. So a semaphore orders only if a single thread posts to it, and
no other process can: what another thread takes from it for the k-th time is at least the k-th post. Locks order
nothing: who gets one first is chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.necessity import Handovers

EVER = np.iinfo(np.int64).max
NEVER = np.iinfo(np.int64).min


def handovers_of(recording: Recording, threads: int) -> Handovers:
    """Return what each thread knows of the others, from each time on at which it learns more."""
    kinds = {name: constant(f"FFM_ACCESS_{name}") for name in ("INITIAL", "POST", "TAKE", "JOIN")}
    rows = recording.accesses[np.isin(recording.accesses["kind"], list(kinds.values()))]
    rows = rows[np.argsort(rows["time"], kind="stable")]
    posters = _posters(rows[rows["kind"] == kinds["POST"]])
    known = np.full((threads, threads), NEVER, np.int64)
    posts: dict[int, list[NDArray[np.int64]]] = {}
    initial: dict[int, int] = {}
    taken: dict[tuple[int, int], int] = {}
    learned: list[tuple[int, int, NDArray[np.int64]]] = []
    columns = (rows[name].tolist() for name in ("kind", "operation_thread", "time", "address", "operation"))
    for kind, thread, time, address, operation in zip(*columns, strict=True):
        if thread >= threads:
            continue
        if kind == kinds["INITIAL"]:
            initial[address], posts[address] = operation, []
            taken = {key: count for key, count in taken.items() if key[0] != address}
            continue
        if kind == kinds["POST"]:
            now = known[thread].copy()
            now[thread] = time
            posts.setdefault(address, []).append(now)
            continue
        if kind == kinds["TAKE"]:
            count = taken[address, thread] = taken.get((address, thread), 0) + 1
            place = count - initial.get(address, EVER) - 1
            if posters.get(address) == 1 and 0 <= place < len(posts.get(address, [])):
                known[thread] = np.maximum(known[thread], posts[address][place])
        elif address < threads:
            known[thread] = np.maximum(known[thread], known[address])
            known[thread, address] = EVER
        learned.append((thread, time, known[thread].copy()))
    return Handovers(
        thread=np.array([thread for thread, _, _ in learned], np.int64),
        time=np.array([time for _, time, _ in learned], np.int64),
        known=np.array([state for _, _, state in learned], np.int64).reshape(len(learned), threads),
    )


def _posters(posts: NDArray[Any]) -> dict[int, int]:
    """Return how many threads post to each semaphore."""
    pairs = np.unique(np.column_stack([posts["address"], posts["operation_thread"].astype(np.uint64)]), axis=0)
    addresses, counts = np.unique(pairs[:, 0], return_counts=True)
    return dict(zip(addresses.tolist(), counts.tolist(), strict=True))
