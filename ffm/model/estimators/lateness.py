"""Which waits ended late by chance.

Now and then something delays a waiting thread for much longer than waking takes: another program, an interrupt, the
host of a virtual machine. A fix does not save that delay, which another run has elsewhere or not at all. If a site
hardly ever has it, the wait is not its cause.

Threads of a process can also delay each other if they share processors. Their waits are then late because others run,
which a fix changes, and not by chance. The same goes for the calls, and the times between calls, in which a thread
loses its processor: one that asks again and again whether its work is done never waits, and is late all the same. The
kernel counts how long a thread could have run but had no processor (`DeviceWork.delayed`). Where that was not recorded,
the threads show it: one runs whenever the others are late, so they are late at the same time less often than by chance.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import Action, DeviceWork
from ffm.model.gpu_times.timelines import Times
from ffm.model.grouping import parts, sorted_within
from ffm.model.timeline import Timeline

SELDOM = 0.05
"""At most this share of a site's waits is late by chance. If more are, a thread comes late whenever it sleeps, as on a
busy machine, and is not delayed where it does not wait.
"""

LATE_TIMES = 4
"""A wait is late if its latency is this many times the usual one."""

OFTEN_LATE = 10
"""With fewer late waits of a thread, it could be chance when others are late."""

BY_CHANCE = 0.5
"""Threads share processors if all of them are late at once for less than this share of the time expected by chance."""

BY_SHARING = 0.5
"""Threads share processors if they spent at least this share of the time by which they were late waiting for one."""

NEVER_NS = 1 << 62


def late_limit(usual_ns: int) -> int:
    """Return the latency in nanoseconds from which on a wait is late, if the run's usual one is `usual_ns`."""
    return max(LATE_TIMES * usual_ns, 1)


def late_from(site: NDArray[np.int32], latency: Times, usual_ns: int) -> NDArray[np.int64]:
    """Return the latency in nanoseconds from which on a wait of each site was late by chance; `NEVER_NS` if none was.

    `site` and `latency` have shape (n,). The latency is from the end of the GPU's work until the CPU continues,
    negative where nothing was waited for; `usual_ns` is the run's usual one.
    """
    sites = int(site.max(initial=-1)) + 1
    waits, late = np.zeros(sites, np.int64), np.zeros(sites, np.int64)
    limit = late_limit(usual_ns)
    for part in parts(len(site)):
        beyond = latency[part]
        waits += np.bincount(site[part][beyond >= 0], minlength=sites)
        late += np.bincount(site[part][beyond >= limit], minlength=sites)
    return np.where(late <= SELDOM * waits, limit, NEVER_NS)


def beyond_work(latency: Times) -> NDArray[np.int64]:
    """Return for how long waits lasted beyond the GPU's work; all of one that had nothing left to wait for."""
    return np.where(latency < 0, -1 - latency, latency).astype(np.int64, copy=False)


def sharing_processors(
    timeline: Timeline, work: DeviceWork, latency: Times, usual_ns: int, starved: Starved
) -> NDArray[np.bool_]:
    """Return whether the threads of each process share processors, shape (processes,).

    `latency` and `usual_ns` as for `late_from`, and `starved` as the function of that name returns it. O(n log n) for n
    late waits.
    """
    shares = np.zeros(work.processes, np.bool_)
    if work.processes == len(work.process_of_thread):
        return shares
    threads = len(work.process_of_thread)
    beyond = beyond_work(latency)
    rows = np.flatnonzero(beyond >= late_limit(usual_ns))
    late = np.bincount(timeline.thread[rows], weights=beyond[rows] - usual_ns, minlength=threads)
    known = np.zeros(threads, np.bool_) if work.delayed is None else work.delayed >= 0
    delayed = np.where(known, np.zeros(threads) if work.delayed is None else work.delayed, 0)
    by_process = functools.partial(np.bincount, work.process_of_thread, minlength=work.processes)
    late = late + np.bincount(timeline.thread, weights=starved.within + starved.after, minlength=threads)
    told = by_process(weights=np.where(known, late, 0))
    shares = (told > 0) & (by_process(weights=np.minimum(delayed, late)) >= BY_SHARING * told)
    often = np.bincount(timeline.thread[rows], minlength=threads) >= OFTEN_LATE
    rows = rows[often[timeline.thread[rows]] & (latency[rows] >= 0)]
    process = work.process_of_thread[timeline.thread[rows]]
    for number in np.unique(process[told[process] == 0]).tolist():
        own = rows[process == number]
        over = timeline.start[own] + timeline.duration[own]
        shares[number] = _take_turns(timeline.thread[own], over - (latency[own] - usual_ns), over)
    return shares


def _take_turns(thread: NDArray[np.int32], begin: NDArray[np.int64], end: NDArray[np.int64]) -> bool:
    """Return whether threads, late from `begin` to `end`, are late at the same time less often than by chance.

    Chance counts from when all had been late once, to when the first of them was late for the last time.
    """
    threads, number = np.unique(thread, return_inverse=True)
    if len(threads) < 2:
        return False
    first, last = np.full(len(threads), NEVER_NS), np.zeros(len(threads), np.int64)
    np.minimum.at(first, number, begin)
    np.maximum.at(last, number, end)
    begin, end = begin.clip(first.max(), last.min()), end.clip(first.max(), last.min())
    span = int(last.min() - first.max())
    if span <= 0:
        return False
    share = np.bincount(number, weights=end - begin) / span
    moment = np.concatenate([begin, end])
    order = np.argsort(moment, kind="stable")
    late = np.cumsum(np.repeat([1, -1], len(begin))[order])[:-1]
    together = np.diff(moment[order])[late == len(threads)].sum()
    expected = share.prod() * span
    return bool(expected >= OFTEN_LATE * (end - begin).mean() and together < BY_CHANCE * expected)


class Starved(NamedTuple):
    """How much longer rows took than usual, because their threads had no processor; columns of shape (n,)."""

    within: NDArray[np.int64]
    """In their calls,"""
    after: NDArray[np.int64]
    """and from these to the thread's next ones."""


def starved(
    timeline: Timeline, work: DeviceWork, late: NDArray[np.int64], least_ns: int, elsewhere: NDArray[np.int64]
) -> Starved:
    """Return how much longer than usual at its site each row took, up to its thread's next row, from `least_ns` on, if
    the thread had no processor meanwhile.

    A thread can lose its processor anywhere. It did if the kernel counted at least half of all that the thread was late
    by, in waits (`late`) and elsewhere. Otherwise it worked longer, or waited for something else. `elsewhere` is for
    how long each row's thread waited for others after it. O(n) for few sites.
    """
    if work.delayed is None:
        return Starved(np.zeros(len(timeline), np.int64), np.zeros(len(timeline), np.int64))
    over = timeline.start + timeline.duration
    until = np.append(np.where(timeline.thread[1:] == timeline.thread[:-1], timeline.start[1:], over[:-1]), over[-1:])
    own = timeline.duration - timeline.wait
    longer = _longer_than_usual(timeline.site, until - timeline.start - timeline.wait - elsewhere)
    longer = np.where(longer >= least_ns, longer, 0)
    threads = len(work.process_of_thread)
    behind = np.bincount(timeline.thread, weights=late + longer, minlength=threads)
    longer = np.where((work.delayed >= BY_SHARING * behind)[timeline.thread], longer, 0)
    # A call that only waits acts when it begins.
    waits = (work.action >= Action.WAIT_AND_ENQUEUE) & (work.action <= Action.WAIT_EVENT)
    within = np.where(waits, 0, np.minimum(_longer_than_usual(timeline.site, own).clip(0), longer))
    return Starved(within, longer - within)


def _longer_than_usual(site: NDArray[np.int32], took: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return by how much longer than the median of its site each row took; negative for shorter ones. O(n)."""
    count = np.bincount(site)
    first = np.cumsum(count) - count
    ordered = sorted_within(site.astype(np.int64), took, len(count), count // 2)
    usual = ordered[(first + count // 2).clip(max=max(len(took) - 1, 0))] if len(took) else took
    return took - usual[site]


def late_at_once(timeline: Timeline, work: DeviceWork, late: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for how many nanoseconds all living threads of each process are late at once, shape (processes,).

    Nothing of the program gets on meanwhile: threads fall asleep and wake. `late`, shape (n,), is by how much each row
    is late. A thread lives from its first row to its last one; while only one does, none counts.
    """
    found = np.zeros(work.processes, np.int64)
    over = timeline.start + timeline.duration
    count = len(work.process_of_thread)
    first, last = np.full(count, NEVER_NS), np.zeros(count, np.int64)
    np.minimum.at(first, timeline.thread, timeline.start)
    np.maximum.at(last, timeline.thread, over)
    rows = np.flatnonzero(late > 0)
    for process in np.unique(work.process_of_thread[timeline.thread[rows]]).tolist():
        own = rows[work.process_of_thread[timeline.thread[rows]] == process]
        threads = np.flatnonzero((work.process_of_thread == process) & (first < NEVER_NS))
        moment = np.concatenate([first[threads], last[threads], over[own] - late[own], over[own]])
        lives = np.repeat([1, -1, 0, 0], [len(threads), len(threads), len(own), len(own)])
        sleeps = np.repeat([0, 0, 1, -1], [len(threads), len(threads), len(own), len(own)])
        order = np.argsort(moment, kind="stable")
        living, asleep = np.cumsum(lives[order])[:-1], np.cumsum(sleeps[order])[:-1]
        found[process] = np.diff(moment[order])[(living > 1) & (asleep >= living)].sum()
    return found
