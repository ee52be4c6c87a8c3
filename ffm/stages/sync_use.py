"""Stage 4 (dissertation 4.4): the time from each required synchronization to the first use of what it protects.

Only what stage 3 found is instrumented: the functions of synchronizations that something relied on and of the transfers
that they cover, and only the memory of those transfers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Awaits, Effect, Kind, Memory
from ffm.evidence.matching.alignment import align, translate
from ffm.evidence.operations import function_name, operation_columns
from ffm.evidence.recorded_uses import recorded_accesses, recorded_uses
from ffm.evidence.stack_table import StackTable
from ffm.instrument.modes import Mode
from ffm.instrument.recording.layout import constant
from ffm.results.columnar.columns import Columns
from ffm.results.columnar.tables import stored_table, write_table
from ffm.results.documents.files import write_document
from ffm.results.documents.measured import Baseline, SyncUse
from ffm.results.documents.measured import Memory as MemoryDocument
from ffm.results.documents.stacks import Stack
from ffm.results.folder.identity import read_latest
from ffm.stages.measure import Measurement, Request, measure, require_sound
from ffm.stages.memory import requests_of, watched_functions
from ffm.stages.plan_files import write_unread, write_watch_plan
from ffm.stages.portions import lasting, read_tracing, traced_portion
from ffm.stages.tables import ACCESSES
from ffm.stages.tracing import context_makers

UNSEEN = np.iinfo(np.int64).min
"""The time to a first use that was not watched."""


def run_sync_use(request: Request) -> SyncUse:
    """Run the program with only the required synchronizations and their uses watched; write `sync-use.json`.

    Raises:
        DocumentError: Stage 3 is missing.
        ProgramError: The program could not be measured, or failed.
    """
    memory = read_latest(MemoryDocument, request.folder, "memory")
    accesses = stored_table(memory, "accesses", ACCESSES, request.folder.root)
    plan = request.folder.root / "sync-use.plan"
    numbers = np.unique(accesses["stack"]).tolist()
    write_watch_plan([bytes.fromhex(memory.stacks[number].key) for number in numbers], plan)
    tracing = read_tracing(request.folder)
    portion = traced_portion(tracing)
    until = lasting(request.folder, request.for_s)
    # The portion begins or ends at the same call as in the runs before, so the same functions must be counted.
    functions = (
        [*functions_to_record(accesses), *context_makers()]
        if portion is None and until is None
        else watched_functions(read_latest(Baseline, request.folder, "baseline"))
    )
    # Where nothing uses what waits protect, there is nothing to watch, which would cost a signal for each system call.
    watches = bool(numbers)
    watching = Mode.WATCH | Mode.PLAN | (Mode.NONE if memory.ordinary_memory else Mode.NO_ORDINARY)
    measured = measure(
        "sync-use",
        request,
        on=memory.runs,
        functions=functions,
        mode=watching if watches else Mode.NONE,
        plan=plan if watches else None,
        own_pages=requests_of(tracing) if watches else None,
        portion=portion,
        until=until,
        unread=(
            write_unread([module.path for module in memory.modules], tracing, request.folder.root) if watches else None
        ),
    )
    stacks = StackTable()
    columns = operation_columns(measured.recordings, stacks)
    table = _first_uses(measured, columns, stacks.stacks, memory.stacks, accesses)
    write_table(table, request.folder.table("sync-use-first-uses"))
    document = SyncUse(
        runs=measured.runs,
        run=measured.run,
        modules=memory.modules,
        stacks=memory.stacks,
        first_uses=request.folder.table("sync-use-first-uses").name,
    )
    document = write_document(document, request.folder.document("sync-use"), own=True)
    require_sound(measured.run, request)
    return document


def functions_to_record(accesses: Columns) -> list[str]:
    """Return the functions behind the accesses' transfers and the synchronizations that they relied on.

    A private wait is under no function; it is observed through the internal wait function. The blocks of host memory
    that the driver knows are tracked too, because they show which sources are staged and what kernels can access, and
    where launches are watched or events waited for, what orders streams by events: a wait that is not known to cover a
    launch leaves it watched for good.
    """
    recorded = np.unique(np.concatenate([accesses["function"], accesses["synchronization_function"]]))
    private = constant("FFM_FUNCTION_PRIVATE")
    names = [function_name(function) for function in recorded.tolist() if function != private]
    blocks = [
        function.name
        for function in load_catalogue().of_kind(Kind.ALLOCATION, Kind.FREE, Kind.MAPPING)
        if function.memory in (Memory.PINNED, Memory.MANAGED, Memory.REGISTERED)
    ]
    views = [function.name for function in load_catalogue().of_kind(Kind.VIEW)]
    variables = [function.name for function in load_catalogue().with_effect(Effect.FIND_VARIABLE)]
    launching = {function.name for function in load_catalogue().with_effect(Effect.LAUNCH_GRAPH)}
    graphs = _graph_functions() if launching & set(names) else []
    records = _functions_of_events() if _relies_on_events(names) else []
    return list(dict.fromkeys([*names, *blocks, *views, *variables, *graphs, *records])) if names else []


def _relies_on_events(names: list[str]) -> bool:
    found = (function for function in load_catalogue().functions if function.name in names)
    return any(function.awaits is Awaits.EVENT or function.kind is Kind.LAUNCH for function in found)


def _functions_of_events() -> list[str]:
    """Return the functions that show which work an event stands for, and which streams come after it."""
    catalogue = load_catalogue()
    meant = catalogue.with_effect(
        Effect.RECORD_EVENT, Effect.RECORD_CONTEXT, Effect.SHARE_EVENT, Effect.WAIT_EVENT, Effect.END_STREAM
    )
    ends = [function for function in catalogue.functions if function.ends_context]
    return [function.name for function in (*meant, *catalogue.of_kind(Kind.EVENT), *ends)]


def _graph_functions() -> list[str]:
    """Return the functions that show what a launched graph does, and which calls become part of one."""
    catalogue = load_catalogue()
    return [function.name for function in catalogue.functions if function.kind is Kind.GRAPH or function.captures]


def _first_uses(
    measured: Measurement,
    columns: Columns,
    stacks: list[Stack],
    known: list[Stack],
    accesses: Columns,
) -> Columns:
    """Return a row for each synchronization (named as in stage 3) with the time to its earliest use in nanoseconds.

    The time is the program's own: from when it continued after the wait and the watch was set, to the access, without
    the cost of the fault. Where the use was not watched, it is that of the watched one of its site before it.
    """
    columns["stack"] = translate(columns["stack"], stacks, known)
    synchronization = {
        "process": accesses["process"],
        "thread": accesses["synchronization_thread"],
        "stack": accesses["synchronization_stack"],
        "occurrence": accesses["synchronization_occurrence"],
    }
    found_again = align([synchronization, accesses], columns)
    relied, transfer = found_again.rows(synchronization), found_again.rows(accesses)
    ends = (columns["start"] + columns["duration"])[np.maximum(relied, 0)] if len(columns["start"]) else relied
    row, time, armed, cost, unseen = _accesses(measured, columns)
    found = _next_of(row[~unseen], time[~unseen], transfer, ends)
    unwatched = np.isin(transfer, row[unseen])
    time, armed, cost = time[~unseen], armed[~unseen], cost[~unseen]
    seen = (relied >= 0) & (transfer >= 0) & ((found >= 0) | unwatched)
    used = np.maximum(found, 0)
    first_use = np.full(len(relied), -1, np.int64)
    if len(time):
        resumed = np.maximum(ends, np.where(armed[used] <= time[used], armed[used], 0))
        first_use = np.where(seen, np.maximum(time[used] - resumed - cost[used], 0), -1)
    first_use[seen & unwatched] = UNSEEN
    rows = np.flatnonzero(seen)
    order = rows[np.argsort(first_use[rows], kind="stable")]
    distinct = _first_rows({name: column[order] for name, column in synchronization.items()})
    chosen = order[distinct]
    identity = {name: column[chosen] for name, column in synchronization.items()}
    as_before = measured_before(identity, first_use[chosen])
    told = as_before != UNSEEN
    return {
        **{name: column[told] for name, column in identity.items()},
        "first_use": as_before[told].astype(np.int64),
    }


def measured_before(identity: Columns, first_use: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return times with those that are `UNSEEN` taken from the last seen one of the same site and thread, or from the
    next one; they stay where there is neither.
    """
    order = np.lexsort([identity[name] for name in ("occurrence", "stack", "thread", "process")])
    site = np.cumsum(np.append(False, _changes(identity, order)))[: len(order)]
    seen = first_use[order] != UNSEEN
    place = np.arange(len(order))
    before = np.maximum.accumulate(np.where(seen, place, -1))
    after = np.minimum.accumulate(np.where(seen, place, len(order))[::-1])[::-1]
    from_before = (before >= 0) & (site[before] == site)
    sites = np.append(site, -1)
    source = np.where(from_before, before, np.where(sites[after] == site, after, place))
    result = np.empty_like(first_use)
    result[order] = first_use[order[source]]
    return result


def _changes(identity: Columns, order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the site or the thread of each row but the first, in an order, differs from that before it."""
    changed = np.zeros(max(len(order) - 1, 0), np.bool_)
    for name in ("stack", "thread", "process"):
        column = identity[name][order]
        changed |= column[1:] != column[:-1]
    return changed


def _accesses(
    measured: Measurement, columns: Columns
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return the row of the operation of each access, its time, when the watch was set, the cost of the fault, and
    whether the access was not watched, but each one of its site that was came after the same wait.
    """
    parts: list[tuple[NDArray[np.int64], ...]] = []
    for process, recording in enumerate(measured.recordings):
        rows = np.flatnonzero(columns["process"] == process)
        uses = recorded_uses(
            {name: column[rows] for name, column in columns.items()},
            recorded_accesses(recording, measured.recordings),
            {},
        )
        watched = uses.recorded["kind"] != constant("FFM_ACCESS_UNWATCHED")
        recorded = uses.recorded[watched]
        parts.append(
            (
                rows[uses.model.operation[watched]],
                recorded["time"].astype(np.int64),
                recorded["armed"].astype(np.int64),
                np.full(len(recorded), recording.fault_cost, np.int64),
                (recorded["flags"] & constant("FFM_ACCESS_PRESUMED")) != 0,
            )
        )
    row, time, armed, cost, unseen = (np.concatenate(column) for column in zip(*parts, strict=True))
    return row, time, armed, cost, unseen


def _next_of(
    row: NDArray[np.int64], time: NDArray[np.int64], wanted: NDArray[np.int64], after: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each wanted row, its first entry among `row` at that time or later; -1 if there is none."""
    count, asked = len(row), len(wanted)
    rows = np.concatenate([row, wanted])
    order = np.lexsort((np.repeat([1, 0], [count, asked]), np.concatenate([time, after]), rows))
    entry = np.where(order < count, order, count)
    # The nearest entry after each position: a running minimum of positions from the end.
    places = np.where(order < count, np.arange(len(order)), len(order))
    nearest = np.minimum.accumulate(places[::-1])[::-1]
    found = np.append(entry, count)[nearest]
    result = np.full(asked, -1, np.int64)
    asking = np.flatnonzero(order >= count)
    candidate = found[asking]
    known = candidate < count
    same = np.zeros(len(asking), bool)
    same[known] = row[candidate[known]] == wanted[order[asking[known]] - count]
    result[order[asking[same]] - count] = candidate[same]
    return result


def _first_rows(identity: Columns) -> NDArray[np.int64]:
    """Return the first row of each distinct identity."""
    table = np.column_stack([column.astype(np.int64) for column in identity.values()])
    if not len(table):
        return np.empty(0, np.int64)
    _, first = np.unique(table, axis=0, return_index=True)
    return np.sort(first)
