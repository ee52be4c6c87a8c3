"""The passes over the operations of a process that decide who relies on which synchronization.

In the part of Python that Numba compiles; `ffm.model.compiled.run` chooses. The work of a stream is numbered 1, 2, … in
its order; what is known to be over is a vector with one such number for each stream (a vector clock). Of each host
thread and stream, the synchronizations that cover some work are kept on a stack: the last one on top, those below
cover more and came before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[Any]

ENDED, USED, CLOCK_READ, STARTED = 0, 1, 2, 3
"""Kinds of events, in the order in which events of the same time happen."""

SCOPE_NONE, SCOPE_CONTEXT, SCOPE_STREAM, SCOPE_EVENT = 0, 1, 2, 3
"""Values of `ffm.model.necessity.Scope`; all others cover nothing."""

NOTHING, WORK, RECORD, WAIT_EVENT, RELEASE = 0, 1, 2, 3, 4
"""Values of `ffm.model.necessity.Action`."""

INDEPENDENT, BLOCKING, LEGACY = 0, 1, 2
"""Values of `ffm.model.necessity.StreamKind`."""

NEED_ORDER, NEED_TIMER, NEED_RELEASE = -1, -2, -3
"""What stands in a need where others have the number of a use."""


def sweep(
    event_kind: Integers,
    event_row: Integers,
    event_time: Integers,
    thread: Integers,
    scope: Integers,
    stream: Integers,
    context: Integers,
    event: Integers,
    action: Integers,
    stream_kind: Integers,
    stream_context: Integers,
    legacy_of: Integers,
    threads: int,
    events: int,
    use_operation: Integers,
    use_slot: Integers,
    slots: int,
    use_clock_before: Integers,
    always_used: Integers,
    always_start: Integers,
    required: Integers,
    orders: bool,
) -> tuple[Integers, Integers, Integers]:
    """Go through all events in order of time.

    `event_row` is the row of an operation, or for `USED` and `CLOCK_READ` the number of a use. Uses with the same
    `use_slot` are of the same operation. `required` are the
    synchronizations that stay anyway; with `orders` the needs of later work and of clocks are looked for, else those
    of the uses. `always_used[always_start[s] : always_start[s + 1]]` are the operations of stream `s` on whose ends
    something relies at a time that is not known.

    Returns the needs, shape (count, 6): use (or `NEED_…`), synchronization, thread, time, stream, number of the work;
    the covers, shape (count, 3): synchronization, stream, number up to which its work is over; and for each operation
    its number in its stream.
    """
    streams = len(stream_kind)
    position = np.zeros(len(thread), np.int64)
    length = np.zeros(streams, np.int64)
    behind = np.zeros((streams, streams), np.int64)  # what the next work of a stream comes after
    # Records and waits for events are numbered too: the last real work up to each number, stream after stream.
    before_stream = np.zeros(streams + 1, np.int64)
    for row in range(len(action)):
        if action[row] == WORK or action[row] == RECORD or action[row] == WAIT_EVENT:
            before_stream[stream[row] + 1] += 1
    for one in range(streams):
        before_stream[one + 1] += before_stream[one] + 1
    last_work = np.zeros(before_stream[streams] + 1, np.int64)
    version = np.zeros(streams, np.int64)
    joined = np.zeros((streams, 2), np.int64)  # versions at the last join: own, of the legacy stream
    joined_by_legacy = np.full(streams, -1, np.int64)
    recorded = np.zeros((max(events, 1), streams), np.int64)
    was_recorded = np.zeros(max(events, 1), np.bool_)
    covering = np.zeros((threads, streams), np.int64)  # of the wait under way of each thread
    most = np.zeros((threads, streams), np.int64)  # covered so far by waits of each thread
    stays = np.zeros((threads, streams), np.int64)  # the same by those that stay anyway
    syncs_ended = 0
    ordered_at = np.zeros(streams, np.int64)
    clock = np.zeros((threads, streams), np.int64)
    released = np.zeros(streams, np.int64)
    always_next = np.zeros((threads, streams), np.int64)
    for number in range(threads):
        for one in range(streams):
            always_next[number, one] = always_start[one]
    satisfied = np.zeros((slots, threads), np.bool_)  # by operation that is used, and thread whose wait was credited

    top = np.full((threads, streams), -1, np.int64)
    node_sync = np.empty(1024, np.int64)
    node_cover = np.empty(1024, np.int64)
    node_below = np.empty(1024, np.int64)
    nodes = 0
    needs = np.empty((1024, 6), np.int64)
    need_count = 0
    covers = np.empty((1024, 3), np.int64)
    cover_count = 0

    for index in range(len(event_kind)):
        kind, row, time = event_kind[index], event_row[index], event_time[index]

        if kind == STARTED:
            own = stream[row]
            if action[row] != NOTHING and action[row] != RELEASE:
                # What the GPU itself puts before this work.
                if stream_kind[own] == LEGACY:
                    for other in range(streams):
                        if (
                            stream_kind[other] == BLOCKING
                            and stream_context[other] == stream_context[own]
                            and joined_by_legacy[other] != version[other]
                        ):
                            joined_by_legacy[other] = version[other]
                            for one in range(streams):
                                behind[own, one] = max(behind[own, one], behind[other, one])
                elif stream_kind[own] == BLOCKING:
                    legacy = legacy_of[stream_context[own]]
                    if legacy >= 0 and joined[own, 1] != version[legacy]:
                        joined[own, 1] = version[legacy]
                        for one in range(streams):
                            behind[own, one] = max(behind[own, one], behind[legacy, one])
                if action[row] == WAIT_EVENT and event[row] >= 0 and was_recorded[event[row]]:
                    for one in range(streams):
                        behind[own, one] = max(behind[own, one], recorded[event[row], one])
                if action[row] == WORK and orders and ordered_at[own] != syncs_ended:
                    ordered_at[own] = syncs_ended
                    mine = thread[row]
                    for one in range(streams):
                        reach = behind[own, one]
                        for number in range(threads):
                            upto = last_work[before_stream[one] + most[number, one]]
                            if upto <= behind[own, one] or (number != mine and upto <= most[mine, one]):
                                continue
                            reach = max(reach, upto)
                            if stays[number, one] >= upto:
                                continue
                            node = top[number, one]
                            while node_cover[node] < upto:
                                node = node_below[node]
                            if need_count == len(needs):
                                grown = np.empty((2 * need_count, 6), np.int64)
                                grown[:need_count] = needs
                                needs = grown
                            needs[need_count, 0] = NEED_ORDER
                            needs[need_count, 1] = node_sync[node]
                            needs[need_count, 2] = number
                            needs[need_count, 3] = time
                            needs[need_count, 4] = one
                            needs[need_count, 5] = upto
                            need_count += 1
                            stays[number, one] = node_cover[node]
                        behind[own, one] = reach
                length[own] += 1
                position[row] = length[own]
                place = before_stream[own] + length[own]
                last_work[place] = length[own] if action[row] == WORK else last_work[place - 1]
                behind[own, own] = length[own]
                version[own] += 1
                if action[row] == RECORD and event[row] >= 0:
                    was_recorded[event[row]] = True
                    for one in range(streams):
                        recorded[event[row], one] = behind[own, one]
            if action[row] == RELEASE and orders:
                for one in range(streams):
                    for number in range(threads):
                        upto = last_work[before_stream[one] + most[number, one]]
                        if upto <= released[one] or stays[number, one] >= upto:
                            continue
                        node = top[number, one]
                        while node_cover[node] < upto:
                            node = node_below[node]
                        if need_count == len(needs):
                            grown = np.empty((2 * need_count, 6), np.int64)
                            grown[:need_count] = needs
                            needs = grown
                        needs[need_count, 0] = NEED_RELEASE
                        needs[need_count, 1] = node_sync[node]
                        needs[need_count, 2] = number
                        needs[need_count, 3] = time
                        needs[need_count, 4] = one
                        needs[need_count, 5] = upto
                        need_count += 1
                        stays[number, one] = node_cover[node]
                    for number in range(threads):
                        released[one] = max(released[one], most[number, one])
            if scope[row] == SCOPE_NONE:
                continue
            mine = thread[row]
            for one in range(streams):
                covering[mine, one] = 0
            if scope[row] == SCOPE_CONTEXT:
                for one in range(streams):
                    if stream_context[one] == context[row]:
                        for other in range(streams):
                            covering[mine, other] = max(covering[mine, other], behind[one, other])
            elif scope[row] == SCOPE_STREAM:
                for one in range(streams):
                    covering[mine, one] = behind[own, one]
                if stream_kind[own] == LEGACY:
                    for other in range(streams):
                        if stream_kind[other] == BLOCKING and stream_context[other] == stream_context[own]:
                            for one in range(streams):
                                covering[mine, one] = max(covering[mine, one], behind[other, one])
            elif scope[row] == SCOPE_EVENT and event[row] >= 0 and was_recorded[event[row]]:
                for one in range(streams):
                    covering[mine, one] = recorded[event[row], one]

        elif kind == ENDED:
            mine = thread[row]
            syncs_ended += 1
            for one in range(streams):
                upto = covering[mine, one]
                if upto == 0:
                    continue
                if cover_count == len(covers):
                    grown = np.empty((2 * cover_count, 3), np.int64)
                    grown[:cover_count] = covers
                    covers = grown
                covers[cover_count, 0] = row
                covers[cover_count, 1] = one
                covers[cover_count, 2] = upto
                cover_count += 1
                most[mine, one] = max(most[mine, one], upto)
                if required[row]:
                    stays[mine, one] = max(stays[mine, one], upto)
                node = top[mine, one]
                while node >= 0 and node_cover[node] <= upto:
                    node = node_below[node]
                if nodes == len(node_sync):
                    bigger = np.empty(2 * nodes, np.int64)
                    bigger[:nodes] = node_sync
                    node_sync = bigger
                    bigger = np.empty(2 * nodes, np.int64)
                    bigger[:nodes] = node_cover
                    node_cover = bigger
                    bigger = np.empty(2 * nodes, np.int64)
                    bigger[:nodes] = node_below
                    node_below = bigger
                node_sync[nodes] = row
                node_cover[nodes] = upto
                node_below[nodes] = node
                top[mine, one] = nodes
                nodes += 1
                if orders:
                    continue
                place = always_next[mine, one]
                while place < always_start[one + 1]:
                    used = always_used[place]
                    if position[used] == 0 or position[used] > upto:
                        break
                    if need_count == len(needs):
                        grown = np.empty((2 * need_count, 6), np.int64)
                        grown[:need_count] = needs
                        needs = grown
                    needs[need_count, 0] = len(use_operation) + place
                    needs[need_count, 1] = row
                    needs[need_count, 2] = mine
                    needs[need_count, 3] = time
                    needs[need_count, 4] = one
                    needs[need_count, 5] = position[used]
                    need_count += 1
                    place += 1
                always_next[mine, one] = place

        elif kind == USED and not orders:
            used = use_operation[row]
            one = stream[used]
            for number in range(threads):
                if satisfied[use_slot[row], number] or most[number, one] < position[used]:
                    continue
                satisfied[use_slot[row], number] = True
                node = top[number, one]
                while node_cover[node] < position[used]:
                    node = node_below[node]
                if need_count == len(needs):
                    grown = np.empty((2 * need_count, 6), np.int64)
                    grown[:need_count] = needs
                    needs = grown
                needs[need_count, 0] = row
                needs[need_count, 1] = node_sync[node]
                needs[need_count, 2] = number
                needs[need_count, 3] = time
                needs[need_count, 4] = one
                needs[need_count, 5] = position[used]
                need_count += 1

        elif kind == CLOCK_READ and orders:
            # `use_operation` of a clock is the thread that read it.
            mine = use_operation[row]
            for one in range(streams):
                reach = clock[mine, one]
                for number in range(threads):
                    upto = last_work[before_stream[one] + most[number, one]]
                    if upto <= clock[mine, one]:
                        continue
                    reach = max(reach, upto)
                    if not use_clock_before[row] or stays[number, one] >= upto:
                        continue
                    node = top[number, one]
                    while node_cover[node] < upto:
                        node = node_below[node]
                    if need_count == len(needs):
                        grown = np.empty((2 * need_count, 6), np.int64)
                        grown[:need_count] = needs
                        needs = grown
                    needs[need_count, 0] = NEED_TIMER
                    needs[need_count, 1] = node_sync[node]
                    needs[need_count, 2] = number
                    needs[need_count, 3] = time
                    needs[need_count, 4] = one
                    needs[need_count, 5] = upto
                    need_count += 1
                    stays[number, one] = node_cover[node]
                clock[mine, one] = reach

    return needs[:need_count], covers[:cover_count], position


def keepers(
    needs: Integers, covers: Integers, end: Integers, thread: Integers, required: Integers, threads: int, streams: int
) -> Integers:
    """For each synchronization that is not required: the one that must stay since something relies on it later.

    `needs` in order of time, `covers` in order of the synchronizations' ends; both as `sweep` returns them. Returns -1
    where nothing that a synchronization covers is relied on later.
    """
    keep = np.full(len(end), -1, np.int64)
    top = np.full((threads, streams), -1, np.int64)
    below = np.empty(len(needs), np.int64)
    need = len(needs) - 1
    for index in range(len(covers) - 1, -1, -1):
        row, one, upto = covers[index, 0], covers[index, 1], covers[index, 2]
        if required[row]:
            continue
        while need >= 0 and needs[need, 3] >= end[row]:
            number, place = needs[need, 2], needs[need, 4]
            node = top[number, place]
            while node >= 0 and needs[node, 5] >= needs[need, 5]:
                node = below[node]
            below[need] = node
            top[number, place] = need
            need -= 1
        node = top[thread[row], one]
        while node >= 0 and needs[node, 5] > upto:
            node = below[node]
        if node >= 0 and needs[node, 1] != row and (keep[row] < 0 or needs[node, 1] < keep[row]):
            keep[row] = needs[node, 1]
    return keep
