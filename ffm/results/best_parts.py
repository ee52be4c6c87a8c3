"""The best parts of a sequence of stored results (`ffm.model.groups.parts`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ffm.errors import FfmError
from ffm.model.groups.parts import ESTIMATED, best_parts, count_places, promise
from ffm.model.timeline import Kind
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.stored import Estimator, Results, seconds_by, sequence_operations

Place = tuple[str, int] | int
"""File and line, or the number of the site if the line is unknown."""


@dataclass(frozen=True, slots=True)
class BestPart:
    """Operations `start` to `end` of a sequence, numbered from 1, and the distinct places to change."""

    start: int
    end: int
    places: int
    benefit: Benefit


def best_subsequences(results: Results, sequence: int, wanted: int, estimator: Estimator) -> list[BestPart]:
    """Return the parts of a sequence that save most for the fewest places to change, fewest places first.

    Raises:
        FfmError: There is no such sequence, or no part was requested.
        DocumentError: The timeline next to the document cannot be read.
    """
    if wanted < 1:
        raise FfmError(f"--best needs a number of parts from 1, not {wanted}.")
    document = results.document
    operations = sequence_operations(document, sequence)
    lines, membership = len(operations), results.membership
    group_of = np.full(int(membership.offsets[-1]), -1, np.int32)
    first = int(membership.offsets[sequence - 1])
    group_of[first : first + lines] = np.arange(lines)
    sums = results.estimates.sums(membership.line, group_of, lines)
    goes = (sums.duplicate > 0) | ((sums.kind == Kind.FREE) & (sums.unnecessary > 0))
    promised = promise(np.where(goes, sums.total - sums.wait, 0.0), sums.wait, sums.gap)
    places = count_places([_places(document, operation.site) for operation in operations])
    if results.estimates.replay is not None:
        results.estimates.replay.expect(min(lines * (lines + 1) // 2, ESTIMATED))
    benefits: dict[tuple[int, int], Benefit] = {}

    def estimate(start: int, end: int) -> float:
        benefit = results.estimates.of_rows(membership.rows_of(sequence - 1, start, end))
        benefits[start, end] = benefit
        return seconds_by(benefit, estimator)

    return [
        BestPart(part.start + 1, part.end + 1, part.places, benefits[part.start, part.end])
        for part in best_parts(promised, places, estimate, wanted)
    ]


def _places(document: Analysis, site: int) -> frozenset[Place]:
    """Return what would have to change to fix a site: its place and, for a free, where its memory is allocated."""
    sites = {site}
    if document.sites[site].kind == Kind.FREE.name.lower():
        sites |= {link.allocation for link in document.allocations if link.site == site and link.allocation is not None}
    return frozenset(_place(document, number) for number in sites)


def _place(document: Analysis, number: int) -> Place:
    site = document.sites[number]
    return (site.file, site.line) if site.line else number
