"""A script as the tables that `ffm.model.necessity.rules` judges: what stage 3 would have recorded."""

from __future__ import annotations

import numpy as np

from ffm.model.necessity.program import Action, Handovers, Operations, Role, Scope, StreamKind, Streams, Uses
from tests.planted.scripts import WAITS, WORKS, Script, Step

STEP_NS = 1000
"""Each step starts this long after the one before."""

SCOPES = {
    "wait_device": Scope.CONTEXT,
    "wait_stream": Scope.STREAM,
    "wait_event": Scope.EVENT,
    "download_now": Scope.STREAM,
    "upload_now": Scope.STREAM,
}

ACTIONS = {"record": Action.RECORD, "order": Action.WAIT_EVENT, **dict.fromkeys(WORKS, Action.WORK)}

STREAMS = Streams(
    kind=np.array([StreamKind.LEGACY, StreamKind.BLOCKING, *[StreamKind.INDEPENDENT] * 2], np.uint8),
    context=np.zeros(4, np.int64),
)


def operations_of_script(script: Script) -> Operations:
    """One operation for each step, so that rows are steps; accesses are operations that do nothing."""
    count = len(script)
    start = np.arange(count, dtype=np.int64) * STEP_NS
    concerned = ("record", "order", "wait_event")
    return Operations(
        start=start,
        end=start + STEP_NS // 2,
        thread=np.array([step.thread for step in script], np.int64),
        scope=np.array([SCOPES.get(step.operation, Scope.NONE) for step in script], np.uint8),
        judged=np.array([step.operation in WAITS for step in script], bool),
        stream=np.array([step.stream for step in script], np.int64),
        context=np.zeros(count, np.int64),
        event=np.array([step.event if step.operation in concerned else -1 for step in script], np.int64),
        action=np.array([ACTIONS.get(step.operation, Action.NOTHING) for step in script], np.uint8),
        streams=STREAMS,
    )


def uses_of_script(script: Script) -> Uses:
    """Return all accesses to the memory of each transfer until a download overwrites it, and the queries for times."""
    rows: list[tuple[int, int, Role]] = []
    recorded: dict[int, int] = {}
    for row, step in enumerate(script):
        if step.operation == "record":
            recorded[step.event] = row
        if step.operation == "elapsed":
            rows += [(recorded[event], row, Role.TIMING) for event in (step.event, step.other)]
        if step.operation in WORKS - {"launch"}:
            rows += [(row, later, _role(step)) for later in _accesses(script, row)]
    return Uses(
        operation=np.array([row for row, _, _ in rows], np.int64),
        time=np.array([place for _, place, _ in rows], np.int64) * STEP_NS,
        role=np.array([role for _, _, role in rows], np.uint8),
        thread=np.array([script[later].thread for _, later, _ in rows], np.int64),
    )


def _role(transfer: Step) -> Role:
    if transfer.operation.startswith("download"):
        return Role.RESULT
    return Role.SOURCE if transfer.operation == "upload" else Role.OWN_SOURCE


def _accesses(script: Script, transfer: int) -> list[int]:
    found: list[int] = []
    downloads = script[transfer].operation.startswith("download")
    for row in range(transfer + 1, len(script)):
        step = script[row]
        if step.buffer != script[transfer].buffer:
            continue
        if step.operation in ("download", "download_now"):
            break
        if step.operation == "write" or (step.operation == "read" and downloads):
            found.append(row)
    return found


def handovers_of_script(script: Script) -> Handovers:
    """Return that each step comes after all steps before it, whichever threads they are of."""
    threads = max((step.thread for step in script), default=0) + 1
    return Handovers(
        thread=np.arange(threads, dtype=np.int64),
        time=np.full(threads, -1, np.int64),
        known=np.full((threads, threads), np.iinfo(np.int64).max),
    )
