"""Who used the memory of a process's operations, as the collector recorded it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.program_order import access_rows, access_uses
from ffm.instrument.recording.layout import constant
from ffm.instrument.recording.reader import Recording
from ffm.model.grouping import numbered
from ffm.model.necessity.program import Uses
from ffm.results.columnar.columns import Columns


@dataclass(frozen=True, slots=True)
class RecordedUses:
    """Accesses to the memory of a process's operations: as the model reads them, and as recorded."""

    model: Uses
    recorded: NDArray[np.void]

    def without(self, which: NDArray[np.bool_]) -> RecordedUses:
        """Return the uses without some of them."""
        if not which.any():
            return self
        model = self.model
        kept = Uses(model.operation[~which], model.time[~which], model.role[~which], model.thread[~which])
        return RecordedUses(kept, self.recorded[~which])


def recorded_accesses(recording: Recording, recordings: list[Recording]) -> NDArray[np.void]:
    """Return the accesses to what a process's operations wrote, by it and by its forked children."""
    inherited = constant("FFM_ACCESS_INHERITED")
    found = [_where((recording.accesses["flags"] & inherited) == 0, recording.accesses)]
    family = {recording.process_id}
    for other in recordings:  # in order of start: parents come before their children
        if other.parent_id in family:
            family.add(other.process_id)
            found.append(other.accesses[(other.accesses["flags"] & inherited) != 0])
    return found[0] if len(found) == 1 else np.concatenate(found)


def _where(chosen: NDArray[np.bool_], rows: NDArray[Any]) -> NDArray[Any]:
    """Return the chosen rows; nothing is copied if these are all."""
    return rows if chosen.all() else rows[chosen]


def threads_of(recording: Recording) -> dict[int, int]:
    """Return the numbers of a process's threads by the kernel's; one whose number in the kernel was used again is the
    last one.
    """
    accesses = recording.accesses
    marks = accesses[accesses["kind"] >= constant("FFM_ACCESS_CLOCK")]
    marks = marks[(marks["flags"] & constant("FFM_ACCESS_EARLY")) == 0]
    seen = [
        (recording.operations["thread_id"], recording.operations["thread"]),
        (marks["thread_id"], marks["operation_thread"]),
    ]
    pairs = set[tuple[int, int]]()
    for kernel, own in seen:
        _, first = numbered(kernel, own)
        pairs |= set(zip(kernel[first].tolist(), own[first].tolist(), strict=True))
    return dict(sorted(pairs))


def recorded_uses(columns: Columns, recorded: NDArray[np.void], threads: Mapping[int, int]) -> RecordedUses:
    """Convert recorded accesses to uses of a process's operations, without clock reads and handovers."""
    recorded = _where(recorded["kind"] < constant("FFM_ACCESS_CLOCK"), recorded)
    rows = access_rows(columns, recorded)
    usable = np.append(columns["result"] == 0, False)
    known = usable[rows]
    recorded, rows = _where(known, recorded), _where(known, rows)
    return RecordedUses(access_uses(columns, recorded, rows, threads), recorded)
