"""Precision and recall of ffm's verdicts on the planted suite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.planted.measuring import Answer


@dataclass(frozen=True, slots=True)
class Score:
    """How well "not needed" was reported: 1.0 is perfect."""

    calls: int
    agreed: int
    precision: float
    """Share of the calls reported as not needed that are."""
    recall: float
    """Share of the calls that are not needed that were reported."""

    def __str__(self) -> str:
        return (
            f"{self.agreed} of {self.calls} calls as labelled; not needed: precision {self.precision:.3f}, "
            f"recall {self.recall:.3f}"
        )


def score(answers: Sequence[Answer]) -> Score:
    """Score the answers for many cases."""
    right = sum(answer.problem_found and answer.problem_expected for answer in answers)
    return Score(
        calls=len(answers),
        agreed=sum(answer.agrees for answer in answers),
        precision=_share(right, sum(answer.problem_found for answer in answers)),
        recall=_share(right, sum(answer.problem_expected for answer in answers)),
    )


def disagreements(answers: Iterable[Answer]) -> list[str]:
    """Return one line for each call on which ffm and the label differ."""
    return [str(answer) for answer in answers if not answer.agrees]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
