"""The parts of a sequence that are worth fixing first: seconds saved against places to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ffm.report.commands import command
from ffm.report.numbers import Estimator, Saving, Scale
from ffm.results.documents.analysis import Analysis
from ffm.results.places import Place, place

if TYPE_CHECKING:
    from ffm.results.best_parts import BestPart


@dataclass(frozen=True, slots=True)
class PartRow:
    """A part of the sequence: operations `start` to `end`, and how many places in the source would change for it.

    `share` is the part's percentage of the whole sequence's saving. `command` opens its own screen.
    """

    start: int
    end: int
    places: int
    saving: Saving
    share: float
    first: Place
    last: Place
    command: str


@dataclass(frozen=True, slots=True)
class BestView:
    """Everything on the screen of `ffm subsequence --best`. Each part saves more than any part with as few places."""

    application: str
    wall_s: float
    estimator: Estimator
    sequence: int
    operations_in_sequence: int
    whole: Saving
    parts: list[PartRow]


def best(
    analysis: Analysis, number: int, parts: Sequence[BestPart], estimator: Estimator, results: str = ""
) -> BestView:
    """Lay out the best parts of sequence `number`, which must exist."""
    scale = Scale(analysis.wall_s)
    sequence = analysis.sequences[number - 1]
    whole = scale.saving(sequence.benefit)
    which = f" --sequence {number}" if number != 1 else ""
    rows = [
        PartRow(
            start=part.start,
            end=part.end,
            places=part.places,
            saving=scale.saving(part.benefit),
            share=100 * scale.saving(part.benefit).seconds(estimator) / whole.seconds(estimator)
            if whole.seconds(estimator) > 0
            else 0.0,
            first=place(analysis, sequence.operations[part.start - 1].site),
            last=place(analysis, sequence.operations[part.end - 1].site),
            command=command(f"subsequence {part.start} {part.end}{which}", results),
        )
        for part in parts
    ]
    return BestView(
        application=analysis.application,
        wall_s=analysis.wall_s,
        estimator=estimator,
        sequence=number,
        operations_in_sequence=len(sequence.operations),
        whole=whole,
        parts=rows,
    )
