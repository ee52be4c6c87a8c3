"""What fixing parts of sequences saves, estimated in stage 5 where a viewing command would take long to do it."""

from __future__ import annotations

from collections.abc import Sequence as Several

import msgspec

from ffm.model.groups.sequences import Membership
from ffm.results.documents.analysis import Sequence, SequencePart
from ffm.results.estimates import Estimates
from ffm.results.wholes import at_least

LONG_ROWS = 200_000
"""Estimating a part of a shorter run takes a viewing command about a second."""

ROWS = 50_000_000
"""Rows of all parts together: a part takes stage 5 up to half a microsecond for each row of the run."""

LEAST = 4
"""At least so many parts are estimated, however long the run is."""


def with_parts(sequences: Several[Sequence], membership: Membership, estimates: Estimates, rows: int) -> list[Sequence]:
    """Return a long run's sequences with what their parts save, those of the first sequences, as many as are
    affordable. All parts of a sequence are estimated, or none; the whole is no part.
    """
    left = max(ROWS // max(rows, 1), LEAST) if rows >= LONG_ROWS and estimates.replay is not None else 0
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
