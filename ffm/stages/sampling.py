"""What stage 2 sampled of the program's own work, by the calls around it and the line of the program."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.evidence.samples import calls_around, work_meanwhile
from ffm.instrument.recording.reader import Recording
from ffm.model.grouping import numbered
from ffm.results.columnar.columns import Columns
from ffm.results.documents.measured import Sampled, SampledPlace
from ffm.symbols.sampled_places import sampled_places

Rows = NDArray[np.int64]

WORTH_NAMING_NS = 20_000_000
"""Of work between two sites that takes less in all, no sample may be there by chance."""


def sampled_work(recordings: list[Recording], columns: Columns) -> Sampled:
    """Return the samples of a run, whose operations are `columns`, added up; their sites are the stacks there.

    What a thread did before its first call is unknown.
    """
    numbers: dict[SampledPlace, int] = {}
    parts = [np.empty((0, 5), np.int64)]
    for process, recording in enumerate(recordings):
        places = [numbers.setdefault(place, len(numbers)) for place in sampled_places(recording)]
        if not places:
            continue
        before, after = calls_around(recording, process, columns)
        known = before >= 0
        samples = recording.samples
        place = np.array(places, np.int64)[samples.stack]
        parts.append(_rows(columns, before[known], after[known], place[known], samples.nanoseconds[known]))
        parts.append(_unseen(columns, before[known]))
        others = work_meanwhile(recording, process, columns)
        parts.append(_rows(columns, others.row, others.row + 1, place[others.sample], others.nanoseconds, beside=1))
    table = np.concatenate(parts).astype(np.int64)
    distinct, number = np.unique(table[:, :4], axis=0, return_inverse=True)
    nanoseconds = np.bincount(number.reshape(-1), weights=table[:, 4], minlength=len(distinct)).astype(np.int64)
    return Sampled(
        period_ns=int(min((one.samples.nanoseconds.min() for one in recordings if len(one.samples)), default=0)),
        places=list(numbers),
        before=distinct[:, 0].tolist(),
        after=distinct[:, 1].tolist(),
        place=distinct[:, 2].tolist(),
        beside=distinct[:, 3].tolist(),
        nanoseconds=nanoseconds.tolist(),
    )


def _rows(
    columns: Columns,
    before: Rows,
    after: Rows,
    place: NDArray[np.int64],
    nanoseconds: NDArray[np.int64],
    *,
    beside: int = 0,
) -> NDArray[np.int64]:
    """Return rows of site before, site after (-1 for none), place, `beside` and nanoseconds."""
    site = columns["stack"]
    following = np.where(after >= 0, site[after], -1)
    kind = np.full(len(before), beside, np.int64)
    return np.column_stack((site[before], following, place, kind, nanoseconds)).astype(np.int64)


def _unseen(columns: Columns, before: Rows) -> NDArray[np.int64]:
    """Return, without any time, what threads did long between two sites of all that they did, at the place 0. They were
    sampled after the rows `before`.
    """
    process, thread = columns["process"], columns["thread"]
    same = (process[1:] == process[:-1]) & (thread[1:] == thread[:-1])
    number = np.concatenate(([0], np.cumsum(~same)))
    sampled = np.zeros(number[-1] + 1, np.bool_)
    sampled[number[before]] = True
    row = np.flatnonzero(same & sampled[number[:-1]])
    gap = columns["start"][row + 1] - columns["start"][row] - columns["duration"][row]
    pair, first = numbered(columns["stack"][row], columns["stack"][row + 1])
    row = row[first[np.bincount(pair, weights=gap, minlength=len(first)) > WORTH_NAMING_NS]]
    nothing = np.zeros(len(row), np.int64)
    return _rows(columns, row, row + 1, nothing, nothing)
