"""What stage 3 recorded, as the order of work and waits that `ffm.model.necessity.rules` judges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import DriverFunction, load_catalogue
from ffm.driver.vocabulary import Awaits, Direction, Effect, Kind, Memory, Shape
from ffm.evidence.calls import calls_where, done_calls, functions_called, waiting
from ffm.evidence.documented_waits import FREES_THAT_WAIT
from ffm.evidence.handles import contexts_of, events_of, seen_created, streams_of
from ffm.instrument.recording.layout import constant
from ffm.model.codes import is_one_of
from ffm.model.grouping import numbered
from ffm.model.necessity.program import UNKNOWN_THREAD, Action, Operations, Role, Scope, Streams, Uses
from ffm.model.transfers import latest_of
from ffm.results.columnar.columns import Columns

NOT_READY = 600
"""`CUDA_ERROR_NOT_READY` in `cuda.h`: the answer to a query for unfinished work."""

_SCOPES = {Awaits.CONTEXT: Scope.CONTEXT, Awaits.STREAM: Scope.STREAM, Awaits.EVENT: Scope.EVENT}


class _Calls:
    """Which operations of a process are calls of which functions, by what the catalogue says about these."""

    def __init__(self, columns: Columns) -> None:
        catalogue = load_catalogue()
        self._functions = columns["function"]
        self._called = set(functions_called(self._functions))
        self._none = np.zeros(len(self._functions), np.bool_)
        self._none.flags.writeable = False  # it is shared
        self._flags = columns["flags"]
        self.kind = {kind: self.of(catalogue.of_kind(kind)) for kind in Kind}
        self.awaits = {work: self.of(f for f in catalogue.functions if f.awaits is work) for work in Awaits}
        self.effect = {effect: self.of(catalogue.with_effect(effect)) for effect in Effect}
        self.asynchronous = self.of(function for function in catalogue.functions if function.asynchronous)
        self.on_stream = self.of(function for function in catalogue.functions if function.stream >= 0)
        self.waiting_frees = self.of(f for f in catalogue.of_kind(Kind.FREE) if f.memory in FREES_THAT_WAIT)
        self.copies = self.kind[Kind.TRANSFER] | self.kind[Kind.SET]
        self.waited = waiting(columns)
        self.done = columns["result"] == 0

    def of(self, chosen: Iterable[DriverFunction]) -> NDArray[np.bool_]:
        """Return which operations are calls of these functions."""
        among = self._called.intersection(function.index for function in chosen)
        return is_one_of(self._functions, among) if among else self._none  # of most, there is no call

    def flagged(self, flag: str) -> NDArray[np.bool_]:
        """Return which operations have a flag of `layout.h`."""
        flagged: NDArray[np.bool_] = (self._flags & constant(flag)) != 0
        return flagged


def operations_of(columns: Columns) -> Operations:
    """For each operation of a process, sorted by start, say how it affects the order of work and what it waits for."""
    calls = _Calls(columns)
    scope, judged = _scopes(columns, calls)
    records, elsewhere = calls.effect[Effect.RECORD_EVENT], calls.effect[Effect.RECORD_CONTEXT]
    concerned = records | elsewhere | calls.awaits[Awaits.EVENT] | calls.effect[Effect.WAIT_EVENT]
    event = events_of(columns, concerned).astype(np.int64)
    recorded_unseen = _recorded_unseen(columns, event, records & calls.done, elsewhere & calls.done)
    of_event = (scope == Scope.EVENT) & judged
    scope[of_event & recorded_unseen] = Scope.UNKNOWN
    if (of_event & recorded_unseen).any():
        scope[of_event & _unrecorded(columns, event, records | elsewhere)] = Scope.UNRECORDED
    stream, streams = streams_of(columns)
    return Operations(
        start=columns["start"],
        end=columns["start"] + columns["duration"],
        thread=columns["thread"].astype(np.int64),
        scope=scope,
        judged=judged,
        stream=stream,
        context=contexts_of(columns),
        event=event,
        action=_actions(calls),
        streams=Streams(kind=streams.kind, context=streams.context),
    )


def _scopes(columns: Columns, calls: _Calls) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return what each operation waits for, and which get a verdict: all except queries. What launches
    wait for is part of their call.
    """
    waited, kind = calls.waited, calls.kind
    scope = np.full(len(waited), Scope.NONE, np.uint8)
    scope[waited] = Scope.UNKNOWN
    scope[waited & calls.copies] = Scope.STREAM
    to_host = calls.flagged("FFM_OPERATION_HOST_DESTINATION")
    scope[waited & calls.copies & calls.asynchronous & ~to_host] = Scope.STAGING
    scope[waited & (kind[Kind.FREE] | kind[Kind.MODULE] | kind[Kind.CONTEXT])] = Scope.CONTEXT
    scope[columns["function"] == constant("FFM_FUNCTION_PRIVATE")] = Scope.PRIVATE
    explicit = kind[Kind.SYNCHRONIZATION] & calls.done
    scope[kind[Kind.SYNCHRONIZATION]] = Scope.UNKNOWN
    for work in _SCOPES:
        scope[explicit & calls.awaits[work]] = _SCOPES[work]
    if calls.flagged("FFM_OPERATION_RECORDS").any():  # the last record of an event may not have been seen
        scope[explicit & calls.awaits[Awaits.EVENT]] = Scope.UNKNOWN
    judged = scope != Scope.NONE
    answers = polled_until_done(columns, kind[Kind.QUERY], judged)
    for work in _SCOPES:
        scope[answers & calls.awaits[work]] = _SCOPES[work]
    return scope, judged


def _actions(calls: _Calls) -> NDArray[np.uint8]:
    """Return how each operation affects the order of work."""
    done, kind, effect = calls.done, calls.kind, calls.effect
    action = np.full(len(done), Action.NOTHING, np.uint8)
    beyond_order = effect[Effect.NONE] | effect[Effect.WRITE_VALUE] | effect[Effect.HOLD]
    order = kind[Kind.ORDER] & beyond_order & calls.on_stream
    frees = kind[Kind.FREE] & done
    copied = calls.copies & ~calls.flagged("FFM_OPERATION_ON_CPU")
    pooled = (frees | kind[Kind.ALLOCATION]) & calls.asynchronous
    works = copied | kind[Kind.LAUNCH] | kind[Kind.HOST_FUNCTION] | order | pooled
    action[works & done] = Action.WORK
    held = kind[Kind.HOST_FUNCTION] | effect[Effect.HOLD] | calls.flagged("FFM_OPERATION_HOLDS")
    action[works & done & held] = Action.HOLD
    action[effect[Effect.RECORD_EVENT] & done] = Action.RECORD
    action[effect[Effect.WAIT_EVENT] & done] = Action.WAIT_EVENT
    action[frees & ~calls.asynchronous & ~calls.waited & ~calls.waiting_frees] = Action.RELEASE
    action[kind[Kind.RELEASE] & done & ~calls.waited] = Action.RELEASE
    return action


def polled_until_done(columns: Columns, queries: NDArray[np.bool_], waits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the successful queries of polling loops: the same call returned `NOT_READY` before, without a wait since.

    A query that succeeds at once could be one that the program would not repeat, and after a wait it succeeds because
    of that.
    """
    polled = np.zeros(len(queries), np.bool_)
    if not queries.any():
        return polled
    rows = np.flatnonzero(queries | waits)
    rows = rows[np.lexsort((columns["start"][rows], columns["thread"][rows]))]
    waited = np.cumsum(waits[rows])
    waited, rows = waited[queries[rows]], rows[queries[rows]]
    before, after = rows[:-1], rows[1:]
    again = (columns["stack"][before] == columns["stack"][after]) & (columns["result"][before] == NOT_READY)
    again &= (columns["thread"][before] == columns["thread"][after]) & (columns["result"][after] == 0)
    again &= waited[:-1] == waited[1:]
    polled[after[again]] = True
    return polled


def _recorded_unseen(
    columns: Columns, event: NDArray[np.int64], records: NDArray[np.bool_], elsewhere: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return the operations on an event that was, or may have been, recorded in a way that is not seen.

    A launch records the events of its attributes (`CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT`, `..._COMPLETION_EVENT`),
    another process those that it shares, and some calls record `elsewhere` than on one stream.
    """
    start = columns["start"]
    first_record = np.full(int(event.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    first_elsewhere = first_record.copy()
    np.minimum.at(first_record, event[records], start[records])
    np.minimum.at(first_elsewhere, event[elsewhere], start[elsewhere])
    shares = calls_where(columns["function"], lambda function: function.effect is Effect.SHARE_EVENT)
    on_event = event >= 0
    unseen = np.zeros(len(event), np.bool_)
    unseen[on_event] = first_record[event[on_event]] > start[on_event]
    unseen[on_event] |= first_elsewhere[event[on_event]] <= start[on_event]
    if shares.any():
        unseen |= on_event & np.isin(columns["handle"], np.unique(columns["handle"][shares]))
    return unseen


def _unrecorded(columns: Columns, event: NDArray[np.int64], records: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return the operations on an event that surely was not recorded yet, in none of the ways that are not seen either.

    It was created in this run and is not shared. All its records come later, and from the same thread, so that they
    would come later in any run.
    """
    rows = np.flatnonzero(event >= 0)
    number, start, thread = event[rows], columns["start"][rows], columns["thread"][rows].astype(np.int64)
    last = np.iinfo(np.int64).max
    first_record, least = (np.full(int(number.max(initial=-1)) + 1, last) for _ in range(2))
    most = np.full(len(least), -1)
    record = records[rows]
    np.minimum.at(first_record, number[record], start[record])
    np.minimum.at(least, number[record], thread[record])
    np.maximum.at(most, number[record], thread[record])
    own = (most[number] < 0) | ((least[number] == thread) & (most[number] == thread))
    shares = calls_where(columns["function"], lambda function: function.effect is Effect.SHARE_EVENT)
    alone = own & ~np.isin(columns["handle"][rows], columns["handle"][shares])
    attributes = calls_where(columns["function"], lambda function: function.shape is Shape.LAUNCH_CONFIGURATION)
    before = (start < first_record[number]) & (start < columns["start"][attributes].min(initial=last))
    unrecorded = np.zeros(len(event), np.bool_)
    unrecorded[rows] = alone & before & seen_created(columns, rows)
    return unrecorded


def timing_uses(columns: Columns) -> Uses:
    """Return the queries for the time between two events, as uses of the records of both."""
    asking = done_calls(columns, lambda function: function.kind is Kind.TIMING)
    records = done_calls(columns, lambda function: function.effect is Effect.RECORD_EVENT)
    handle, start = columns["handle"], columns["start"]
    # Both events of a query, one after the other: the one in `handle`, and the one in `source`.
    rows = np.repeat(asking, 2)
    event = np.column_stack((handle[asking], columns["source"][asking])).reshape(-1)
    _, group = np.unique(np.concatenate((handle[records], event)), return_inverse=True)
    last = latest_of(group[len(records) :], start[rows], group[: len(records)], start[records], before=True)
    rows, last = rows[last >= 0], last[last >= 0]
    return Uses(
        operation=records[last],
        time=start[rows].astype(np.int64),
        role=np.full(len(rows), Role.TIMING, np.uint8),
        thread=columns["thread"][rows].astype(np.int64),
    )


def host_function_uses(columns: Columns) -> Uses:
    """Return the program's functions that run in streams, as uses of themselves at an unknown time."""
    rows = done_calls(columns, lambda function: function.kind is Kind.HOST_FUNCTION)
    role = np.full(len(rows), Role.HOST_FUNCTION, np.uint8)
    return Uses(rows, columns["start"][rows], role, np.full(len(rows), UNKNOWN_THREAD))


def unseen_uses(columns: Columns, among: NDArray[np.bool_] | None = None) -> Uses:
    """Return all that may write host memory, or that of some rows, as used at an unknown time by what is not seen."""
    asked = np.arange(len(columns["start"])) if among is None else np.flatnonzero(among)
    writes = (columns["flags"][asked] & constant("FFM_OPERATION_HOST_DESTINATION")) != 0
    launches = calls_where(columns["function"][asked], lambda function: function.kind is Kind.LAUNCH)
    rows = asked[(writes | launches) & (columns["result"][asked] == 0)]
    role = np.full(len(rows), Role.UNWATCHED, np.uint8)
    return Uses(rows, columns["start"][rows], role, np.full(len(rows), UNKNOWN_THREAD))


def shared_uses(columns: Columns) -> Uses:
    """Return all work on the device, as used by another process at an unknown time, if any shares device memory."""
    rows = done_calls(columns, _shares)
    if len(rows):
        rows = done_calls(columns, lambda function: function.kind in (Kind.LAUNCH, Kind.SET, Kind.TRANSFER))
    role = np.full(len(rows), Role.SHARED, np.uint8)
    return Uses(rows, columns["start"][rows], role, np.full(len(rows), UNKNOWN_THREAD))


def _shares(function: DriverFunction) -> bool:
    return function.kind is Kind.SHARING or (function.kind is Kind.ALLOCATION and function.memory is Memory.IMPORTED)


def access_rows(columns: Columns, recorded: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the row of the operation whose memory each recorded access touched; -1 if it was not recorded."""
    found = np.full(len(recorded), -1, np.int64)
    if not len(recorded) or not len(columns["thread"]):
        return found
    wanted = recorded["operation_thread"].astype(np.int64) << 40 | recorded["operation"].astype(np.int64)
    thread, number = columns["thread"], columns["number"]
    if thread.min() == thread.max() and number[-1] - number[0] == len(number) - 1 and (number[1:] > number[:-1]).all():
        # Of one thread, which made no other call in between.
        place = wanted - (int(thread[0]) << 40 | int(number[0]))
        return np.where((place >= 0) & (place < len(number)), place, -1)
    key = thread.astype(np.int64) << 40 | number
    if (key[1:] > key[:-1]).all():  # of one thread, in order of time
        place = np.searchsorted(key, wanted)
        inside = place < len(key)
        candidate = place[inside]
    else:
        order = np.argsort(key)
        place = np.searchsorted(key[order], wanted)
        inside = place < len(order)
        candidate = order[place[inside]]
    found[inside] = np.where(key[candidate] == wanted[inside], candidate, -1)
    return found


def access_uses(
    columns: Columns, recorded: NDArray[np.void], rows: NDArray[np.int64], threads: Mapping[int, int]
) -> Uses:
    """Convert recorded accesses to the memory of operations (`rows`) to uses; `threads` numbers the kernel's."""
    functions, flags = columns["function"][rows], columns["flags"][rows]
    device_writes = calls_where(functions, lambda function: function.kind in (Kind.LAUNCH, Kind.SET))
    writes = (flags & constant("FFM_OPERATION_HOST_DESTINATION")) != 0
    up = calls_where(functions, lambda function: function.direction is Direction.HOST_TO_DEVICE)
    source_in_flight = calls_where(functions, lambda function: function.asynchronous)
    reads = (flags & constant("FFM_OPERATION_HOST_SOURCE")) != 0
    is_result = device_writes | ~((up | reads) & ~writes)
    presumed = (recorded["flags"] & constant("FFM_ACCESS_PRESUMED")) != 0
    unwatched = recorded["kind"] == constant("FFM_ACCESS_UNWATCHED")
    role = np.select(
        [
            unwatched & presumed,
            unwatched,
            recorded["kind"] == constant("FFM_ACCESS_RELEASED"),
            is_result & presumed,
            is_result,
            source_in_flight & presumed,
            source_in_flight,
        ],
        [
            Role.GIVEN_UP,
            Role.UNWATCHED,
            Role.RELEASED,
            Role.RESULT_UNSEEN,
            Role.RESULT,
            Role.SOURCE_UNSEEN,
            Role.SOURCE,
        ],
        Role.OWN_SOURCE,
    ).astype(np.uint8)
    each, first = numbered(recorded["thread_id"])
    known = [threads.get(number, UNKNOWN_THREAD) for number in recorded["thread_id"][first].tolist()]
    thread = np.array(known, np.int64)[each]
    return Uses(operation=rows, time=recorded["time"].astype(np.int64), role=role, thread=thread)


def joined_uses(*parts: Uses) -> Uses:
    """Concatenate uses."""
    return Uses(
        operation=np.concatenate([part.operation for part in parts]),
        time=np.concatenate([part.time for part in parts]),
        role=np.concatenate([part.role for part in parts]),
        thread=np.concatenate([part.thread for part in parts]),
    )
