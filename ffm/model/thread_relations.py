"""Which threads of a run belong together: which started, joined and follow which.

If the C library started a thread, it is recorded which threads started and joined it (`DeviceWork.lives`). Otherwise
times show it: if all calls of a thread are within one gap of another thread, the other is assumed to have started it
there and joined it. The same is assumed of the end of a thread that its recorded parent never joins, because the parent
may wait for it in another way. If most of a thread's gaps end with a wait of another thread, it is assumed to wait for
that one in its gaps. Threads that share a call site run the same code.

No step compares all threads with all others, so a run may have ten thousand.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.model import thread_relations_kernels
from ffm.model.compiled import run
from ffm.model.device import DeviceWork, ThreadLives
from ffm.model.encounter_order import ordered_encounters
from ffm.model.grouping import begins_of
from ffm.model.lock_order import lock_order
from ffm.model.thread_leaders import find_leaders
from ffm.model.timeline import Timeline
from ffm.model.visits import at
from ffm.model.waiting.graph import Threads


def find_family(timeline: Timeline, work: DeviceWork, place: NDArray[np.integer]) -> thread_relations_kernels.Family:
    """Find threads that lived within one gap between two calls of another thread of the process, those that follow one,
    and those alike. O(n log n).
    """
    threads = len(work.process_of_thread)
    parent = np.full(threads, -1, np.int32)
    forked = np.full(threads, -1, np.int64)
    joined = np.full(threads, -1, np.int64)
    follows = np.full(threads, -1, np.int32)
    alike = np.arange(threads, dtype=np.int32)
    encounters = ordered_encounters(timeline, work.encounters, place)
    if threads == work.processes:
        nobody, locks = np.zeros(0, np.int64), lock_order(timeline, None, place)
        return thread_relations_kernels.Family(parent, forked, joined, follows, alike, nobody, locks, encounters)
    locks = lock_order(timeline, work.locks, place)
    begins = begins_of(timeline.thread, threads)
    lived = np.flatnonzero(begins[1:] > begins[:-1])
    forked[lived] = at(place, begins[lived])
    for members in _by_process(work, lived):
        if len(members) > 1:
            _find_parents(timeline, begins, members, place, parent, joined)
            find_leaders(timeline, begins, members, follows)
    if work.lives is not None:
        _take_recorded(work.lives, place, parent, joined)
    # A call site of each process is one of its own.
    sites = int(timeline.site.max(initial=-1)) + 1
    own_site = timeline.site + sites * work.process_of_thread[timeline.thread].astype(np.int64)
    alike = sharing_sites(timeline.thread, own_site, threads)
    if work.lives is not None:
        _let_joined_threads_be_alike(work.lives, joined, follows, alike)
    children = np.flatnonzero(joined >= 0)
    children = children[np.lexsort((alike[children], joined[children]))]
    return thread_relations_kernels.Family(parent, forked, joined, follows, alike, children, locks, encounters)


def without_guesses(
    family: thread_relations_kernels.Family, told: NDArray[np.bool_]
) -> thread_relations_kernels.Family:
    """Return a family in which nothing is guessed about threads for which a profiler recorded whom they wait for.

    `told` has shape (threads,).
    """
    return family._replace(
        parent=np.where(told, -1, family.parent),
        joined=np.where(told, -1, family.joined),
        follows=np.where(told, -1, family.follows),
        children=family.children[~told[family.children]],
    )


def related_threads(
    timeline: Timeline, work: DeviceWork, family: thread_relations_kernels.Family, order: NDArray[np.int64]
) -> Threads:
    """Return a family as the path needs it; `order` is that of the replay, as in `ffm.model.visits`."""
    count, rows = len(family.parent), len(timeline)
    joined = np.where(family.joined >= 0, at(order, family.joined.clip(0)), -1) if rows else family.joined
    started, born = joined.copy(), np.full(count, -1, np.int64)
    if work.lives is not None and rows:
        begins = begins_of(timeline.thread, count)
        known = np.flatnonzero((work.lives.before >= 0) & (family.parent >= 0))
        parent = family.parent[known]
        started[known] = np.clip(work.lives.started[known], begins[parent], begins[parent + 1])
        before = np.where(started[known] > begins[parent], started[known] - 1, -1)
        ended = np.where(before >= 0, (timeline.start + timeline.duration)[before], timeline.start.min())
        first = timeline.start[begins[known].clip(max=rows - 1)]
        born[known] = np.maximum(first - work.lives.before[known], np.minimum(ended, first))
    return Threads(family.parent, joined, family.follows, started, born)


def _take_recorded(
    lives: ThreadLives, place: NDArray[np.integer], parent: NDArray[np.int32], joined: NDArray[np.int64]
) -> None:
    """Put what was recorded of threads in place of what their times show."""
    known = lives.before >= 0
    joined[known & (lives.parent != parent)] = -1
    parent[known] = lives.parent[known]
    ended = np.flatnonzero(known & (lives.joined >= 0))
    joined[ended] = at(place, lives.joined[ended])


def _let_joined_threads_be_alike(
    lives: ThreadLives, joined: NDArray[np.int64], follows: NDArray[np.int32], alike: NDArray[np.int32]
) -> None:
    """Let threads that were joined, as recorded, before the same row be over when the last of them is, in place.

    Not one that follows another thread: it may have ended late because it waited for that.
    """
    known = np.flatnonzero((lives.before >= 0) & (lives.joined >= 0) & (follows < 0))
    _, together = np.unique(joined[known], return_inverse=True)
    alike[known] = len(alike) + together


def _by_process(work: DeviceWork, threads: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    process = work.process_of_thread[threads]
    ordered = threads[np.argsort(process, kind="stable")]
    return np.split(ordered, np.flatnonzero(np.diff(np.sort(process))) + 1) if len(threads) else []


def _find_parents(
    timeline: Timeline,
    begins: NDArray[np.int64],
    members: NDArray[np.int64],
    place: NDArray[np.integer],
    parent: NDArray[np.int32],
    joined: NDArray[np.int64],
) -> None:
    """Fill in the parents of a process's threads, and where these joined them; of several, the first thread."""
    start, end = timeline.start, timeline.start + timeline.duration
    born, died = start[begins[members]], end[begins[members + 1] - 1]
    rows = np.concatenate([np.arange(begins[one], begins[one + 1] - 1) for one in members.tolist()])
    rows = rows[start[rows + 1] - end[rows] >= (died - born).min()]
    if not len(rows):
        return
    by_end = np.argsort(-start[rows + 1], kind="stable")
    rank = np.empty(len(rows), np.int64)
    rank[by_end] = np.arange(len(rows))
    opens = np.maximum(end[rows], start[rows] + 1)  # a thread is started after the call before it has begun
    by_opening, by_birth = np.argsort(opens, kind="stable"), np.argsort(born, kind="stable")
    reaching = np.searchsorted(-start[rows + 1][by_end], -died, side="right")
    found = run(
        thread_relations_kernels.first_enclosing,
        len(rows) + len(members),
        opens[by_opening],
        rank[by_opening],
        rows[by_opening],
        born[by_birth],
        reaching[by_birth],
    )
    within = found >= 0
    inside = members[by_birth][within]
    parent[inside] = timeline.thread[found[within]]
    joined[inside] = at(place, found[within] + 1)


def sharing_sites(owner: NDArray[np.integer], site: NDArray[np.integer], owners: int) -> NDArray[np.int32]:
    """Number the sets of threads or processes that share sites, directly or through others; shape (owners,).

    `owner` and `site` are the columns of a timeline, shape (n,).
    """
    number = np.arange(owners, dtype=np.int32)
    if owners == 1:
        return number
    sites = int(site.max(initial=-1)) + 1
    user, used = np.divmod(np.unique(owner.astype(np.int64) * sites + site), max(sites, 1))
    while True:
        least = np.full(sites, owners, np.int32)
        np.minimum.at(least, used, number[user])
        shared = number.copy()
        np.minimum.at(shared, user, least[used])
        if (shared == number).all():
            return number
        number = shared
