"""What fixing parts of sequences saves, estimated in stage 5 where a viewing command would take too long."""

from __future__ import annotations

from collections.abc import Sequence as Several

import msgspec

from ffm.model.compiled import PLAIN_ROWS
from ffm.model.groups.sequences import Membership
from ffm.results.documents.analysis import Sequence, SequencePart
from ffm.results.estimates import Estimates
from ffm.results.wholes import at_least

LONG_ROWS = 200_000
"""A viewing command takes long to estimate a part of a longer run."""

ROWS = 50_000_000
"""Rows of all parts of a long run together: a part takes stage 5 up to half a microsecond for each row of the run."""

ROWS_OF_SHORTER = 2_000_000
"""The same of a shorter run. A viewing command would take some two seconds, of which most is loading compiled passes,
which stage 5 has at hand. Up to `PLAIN_ROWS`, none are loaded.
"""

LEAST = 4
"""At least this many parts are estimated, however long the run is."""


def with_parts(sequences: Several[Sequence], membership: Membership, estimates: Estimates, rows: int) -> list[Sequence]:
    """Return a run's sequences with what their parts save, where that takes a viewing command long: those of the first
    sequences, as many as are affordable. All parts of a sequence are estimated, or none; the whole is no part.
    """
    left = 0 if estimates.replay is None else _affordable(rows)
    found = []
    for number, sequence in enumerate(sequences):
        lines = len(sequence.operations)
        count = lines * (lines + 1) // 2 - 1
        if count > left:
            found.append(sequence)
            continue
        left -= count
        parts = [(first, last) for first in range(lines) for last in range(first, lines) if last - first + 1 < lines]
        estimated = [
            SequencePart(
                start=first + 1, end=last + 1, benefit=estimates.of_rows(membership.rows_of(number, first, last))
            )
            for first, last in parts
        ]
        benefit = at_least(sequence.benefit, [part.benefit for part in estimated])
        found.append(msgspec.structs.replace(sequence, parts=estimated, benefit=benefit))
    return found


def _affordable(rows: int) -> int:
    """Return how many parts are estimated for a run with this many rows."""
    if rows >= LONG_ROWS:
        return max(ROWS // rows, LEAST)
    return ROWS_OF_SHORTER // rows if rows > PLAIN_ROWS else 0
