"""A script as the tables that `ffm.model.necessity` judges: what stage 3 would have recorded of it."""

from __future__ import annotations

import numpy as np

from ffm.model.necessity import Operations, Role, Scope, Uses
from tests.planted.scripts import WORKS, Script, Step

STEP_NS = 1000
"""Each step begins this long after the one before."""

SCOPES = {
    "wait_device": Scope.CONTEXT,
    "wait_stream": Scope.STREAM,
    "wait_event": Scope.EVENT,
    "download_now": Scope.STREAM,
    "upload_now": Scope.STREAM,
}


def operations_of_script(script: Script) -> Operations:
    """One operation for each step, so that rows are steps; accesses are operations that do nothing."""
    count = len(script)
    start = np.arange(count, dtype=np.int64) * STEP_NS
    stream = np.array([step.stream for step in script], np.uint64)
    bound = start.copy()
    recorded: dict[int, tuple[int, int]] = {}
    for row, step in enumerate(script):
        if step.operation == "record":
            recorded[step.event] = (row, step.stream)
        if step.operation == "wait_event":
            place, stream[row] = recorded[step.event]
            bound[row] = start[place]
    return Operations(
        start=start,
        end=start + STEP_NS // 2,
        scope=np.array([SCOPES.get(step.operation, Scope.NONE) for step in script], np.uint8),
        stream=stream,
        bound=bound,
        enqueues=np.array([step.operation in WORKS for step in script], bool),
        timing=np.array([step.operation == "elapsed" for step in script], bool),
        launches=np.array([step.operation == "launch" for step in script], bool),
        host_function=np.zeros(count, bool),
    )


def uses_of_script(script: Script) -> Uses:
    """The first access to the memory of each transfer, unless a download overwrites it first."""
    rows: list[tuple[int, int, Role]] = []
    for row, transfer in enumerate(script):
        if transfer.operation in WORKS - {"launch"}:
            later = [place for place in range(row + 1, len(script)) if _ends_watch(script[place], transfer)]
            if later and script[later[0]].operation in ("read", "write"):
                rows.append((row, later[0], _role(transfer)))
    return Uses(
        transfer=np.array([row for row, _, _ in rows], np.int64),
        time=np.array([place for _, place, _ in rows], np.int64) * STEP_NS,
        role=np.array([role for _, _, role in rows], np.uint8),
        watched=np.ones(len(rows), bool),
    )


def _role(transfer: Step) -> Role:
    if transfer.operation.startswith("download"):
        return Role.RESULT
    return Role.SOURCE if transfer.operation == "upload" else Role.OWN_SOURCE


def _ends_watch(step: Step, transfer: Step) -> bool:
    if step.buffer != transfer.buffer:
        return False
    reads = step.operation == "read" and transfer.operation.startswith("download")
    return reads or step.operation in ("write", "download", "download_now")
