"""A sequence of problem operations, or a part of one (dissertation, Figures 5.2 and 5.4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ffm.errors import FfmError
from ffm.report.findings import Finding, findings, kept, site_saving
from ffm.report.numbers import Estimator, Saving, Scale
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.benefit import Benefit
from ffm.results.places import Place, place


@dataclass(frozen=True, slots=True)
class Operation:
    """One numbered line. `problems` are `synchronization`, `transfer`, or both. `alone` is what fixing only this site
    would save, over the whole run.
    """

    number: int
    where: Place
    problems: list[str]
    count: int
    alone: Saving


@dataclass(frozen=True, slots=True)
class Reason:
    """Why operations have a verdict. Operations with the same finding share one entry, with occurrences added up."""

    operations: list[int]
    finding: Finding


@dataclass(frozen=True, slots=True)
class SequenceView:
    """Everything on the screen of `ffm sequence` or, with `part` set, of `ffm subsequence`.

    `part` holds the first and last operation of a subsequence. `keep` lists synchronizations outside the sequence that
    must stay. `ends_at` is the needed synchronization that ends the whole sequence, or None at the end of the run.
    `results` is the option that names these results, as the user gave it, or empty.
    """

    application: str
    wall_s: float
    estimator: Estimator
    sequence: int
    operations_in_sequence: int
    part: tuple[int, int] | None
    recurrences: int
    saving: Saving
    synchronization_problems: int
    transfer_problems: int
    operations: list[Operation]
    reasons: list[Reason]
    keep: list[Place]
    ends_at: Place | None
    results: str


def sequence(analysis: Analysis, number: int, estimator: Estimator = "carry", results: str = "") -> SequenceView:
    """Lay out a whole sequence, given its number from 1.

    Raises:
        FfmError: There is no sequence with this number.
    """
    check_sequence(analysis, number)
    return _view(analysis, number, estimator, None, analysis.sequences[number - 1].benefit, results)


def subsequence(
    analysis: Analysis,
    number: int,
    start: int,
    end: int,
    benefit: Benefit,
    estimator: Estimator = "carry",
    results: str = "",
) -> SequenceView:
    """Lay out operations `start` to `end` of a sequence, both included, with the benefit computed for them.

    Raises:
        FfmError: There is no such sequence, or it has no such part.
    """
    check_part(analysis, number, start, end)
    return _view(analysis, number, estimator, (start, end), benefit, results)


def check_sequence(analysis: Analysis, number: int) -> None:
    """Raise an FfmError that lists the valid numbers if the sequence does not exist."""
    last = len(analysis.sequences)
    if 1 <= number <= last:
        return
    if last == 0:
        raise FfmError(
            f"{analysis.application} has no sequence of unnecessary operations: `ffm report` shows what it has."
        )
    which = f"they are numbered 1 to {last}" if last > 1 else "there is only sequence 1"
    raise FfmError(f"{analysis.application} has no sequence {number}: {which}; `ffm report --all` lists all sequences.")


def check_part(analysis: Analysis, number: int, start: int, end: int) -> None:
    """Raise an FfmError with the valid range if the sequence has no such part."""
    check_sequence(analysis, number)
    last = len(analysis.sequences[number - 1].operations)
    if start > end:
        raise FfmError(f"a subsequence runs forward: START ({start}) must not be greater than END ({end}).")
    if start < 1 or end > last:
        raise FfmError(
            f"sequence {number} has operations 1 to {last}, so {start} to {end} is not part of it; "
            f"`ffm sequence {number}` lists them."
        )


def _view(
    analysis: Analysis,
    number: int,
    estimator: Estimator,
    part: tuple[int, int] | None,
    benefit: Benefit,
    results: str,
) -> SequenceView:
    whole = analysis.sequences[number - 1]
    start, end = part or (1, len(whole.operations))
    chosen = list(enumerate(whole.operations[start - 1 : end], start))
    operations = [
        Operation(
            position,
            place(analysis, operation.site),
            operation.problems,
            operation.count,
            site_saving(analysis, operation.site),
        )
        for position, operation in chosen
    ]
    return SequenceView(
        application=analysis.application,
        wall_s=analysis.wall_s,
        estimator=estimator,
        sequence=number,
        operations_in_sequence=len(whole.operations),
        part=part,
        recurrences=whole.recurrences,
        saving=Scale(analysis.wall_s).saving(benefit),
        synchronization_problems=sum("synchronization" in operation.problems for operation in operations),
        transfer_problems=sum("transfer" in operation.problems for operation in operations),
        operations=operations,
        reasons=_reasons(analysis, [(position, operation.site) for position, operation in chosen]),
        keep=kept(analysis, [operation.site for _, operation in chosen]),
        ends_at=None if whole.ends_at is None else place(analysis, whole.ends_at),
        results=results,
    )


def _reasons(analysis: Analysis, numbered_sites: list[tuple[int, int]]) -> list[Reason]:
    """Return the findings about the sites in order of appearance; those that differ only in occurrences are merged."""
    joined: dict[Finding, tuple[list[int], dict[int, Finding]]] = {}
    for position, site in numbered_sites:
        for finding in findings(analysis, site):
            positions, by_site = joined.setdefault(replace(finding, occurrences=0, of=0), ([], {}))
            positions.append(position)
            by_site[site] = finding
    return [
        Reason(
            positions,
            replace(
                same,
                occurrences=sum(finding.occurrences for finding in by_site.values()),
                of=sum(finding.of for finding in by_site.values()),
            ),
        )
        for same, (positions, by_site) in joined.items()
    ]
