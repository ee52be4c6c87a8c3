"""Stage 4 (dissertation 4.4): the time from each required synchronization to the first use of what it protects.

Only what stage 3 found is instrumented: the functions of synchronizations that something relied on and of the
transfers behind them, and the memory of just those transfers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.layout import constant
from ffm.stages.documents import Memory, Stack, SyncUse, read_document, write_document
from ffm.stages.matching import match, translate
from ffm.stages.measure import Measurement, Request, measure, require_sound
from ffm.stages.memory import PLAN, WATCH, uses_of
from ffm.stages.operations import function_name, operation_columns
from ffm.stages.stack_table import StackTable
from ffm.stages.tables import Columns, read_table, write_table


def run_sync_use(request: Request) -> SyncUse:
    """Run the program with only the required synchronizations and their uses watched; write `sync-use.json`.

    Raises:
        DocumentError: stage 3 is missing.
        ProgramError: the program could not be measured, or failed.
    """
    memory = read_document(Memory, request.folder.document("memory"))
    accesses = read_table(request.folder.root / memory.accesses)
    plan = _write_plan(accesses, memory.stacks, request)
    functions = _functions(accesses)
    measured = measure("sync-use", request, functions=functions, mode=WATCH | PLAN, plan=plan)
    stacks = StackTable()
    columns = operation_columns(measured.recordings, stacks)
    table = _first_uses(measured, columns, stacks.stacks, memory.stacks, accesses)
    write_table(table, request.folder.table("sync-use-first-uses"))
    document = SyncUse(
        run=measured.run,
        modules=memory.modules,
        stacks=memory.stacks,
        first_uses=request.folder.table("sync-use-first-uses").name,
    )
    write_document(document, request.folder.document("sync-use"))
    require_sound(measured.run, request)
    return document


def _write_plan(accesses: Columns, stacks: list[Stack], request: Request) -> Path:
    """Write the keys of the transfers' stacks that the collector is to watch."""
    path = request.folder.root / "sync-use.plan"
    numbers = np.unique(accesses["stack"])
    path.write_bytes(b"".join(bytes.fromhex(stacks[number].key) for number in numbers.tolist()))
    return path


def _functions(accesses: Columns) -> list[str]:
    """Return the functions behind the accesses' transfers and the synchronizations that they relied on.

    A private wait is under no function: it is seen through the internal wait function.
    """
    recorded = np.unique(np.concatenate([accesses["function"], accesses["synchronization_function"]]))
    private = constant("FFM_FUNCTION_PRIVATE")
    return [function_name(function) for function in recorded.tolist() if function != private]


def _first_uses(
    measured: Measurement,
    columns: Columns,
    stacks: list[Stack],
    known: list[Stack],
    accesses: Columns,
) -> Columns:
    """Return a row for each synchronization (named as in stage 3) with the time to its earliest use, nanoseconds."""
    columns["stack"] = translate(columns["stack"], stacks, known)
    synchronization = {
        "process": accesses["process"],
        "thread": accesses["synchronization_thread"],
        "stack": accesses["synchronization_stack"],
        "occurrence": accesses["synchronization_occurrence"],
    }
    relied = match(synchronization, columns)
    transfer = match(accesses, columns)
    used = _use_times(measured, columns, transfer)
    ends = columns["start"] + columns["duration"]
    seen = (relied >= 0) & (used >= 0)
    first_use = np.where(seen, np.maximum(used - ends[np.maximum(relied, 0)], 0), -1)
    rows = np.flatnonzero(seen)
    order = rows[np.argsort(first_use[rows], kind="stable")]
    distinct = _first_rows({name: column[order] for name, column in synchronization.items()})
    chosen = order[distinct]
    return {
        **{name: column[chosen] for name, column in synchronization.items()},
        "first_use": first_use[chosen].astype(np.int64),
    }


def _use_times(measured: Measurement, columns: Columns, transfers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time of the first access to each transfer's memory; -1 where it was not seen."""
    times = np.full(len(columns["start"]), -1, np.int64)
    for process, recording in enumerate(measured.recordings):
        rows = np.flatnonzero(columns["process"] == process)
        if not len(rows):
            continue
        uses = uses_of({name: column[rows] for name, column in columns.items()}, recording.accesses)
        watched = uses.model.watched
        times[rows[uses.model.transfer[watched]]] = uses.model.time[watched]
    return np.where(transfers >= 0, times[np.maximum(transfers, 0)], -1)


def _first_rows(identity: Columns) -> NDArray[np.int64]:
    """Return the first row of each distinct identity."""
    table = np.column_stack([column.astype(np.int64) for column in identity.values()])
    if not len(table):
        return np.empty(0, np.int64)
    _, first = np.unique(table, axis=0, return_index=True)
    return np.sort(first)
