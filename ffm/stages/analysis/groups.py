"""Groups of call sites with what fixing each saves: points, folds, sequences."""

from __future__ import annotations

from collections import abc

import numpy as np
from numpy.typing import NDArray

from ffm.model.groups.names import base_name
from ffm.model.groups.sequences import FoundSequence, Membership, find_sequences
from ffm.model.timeline import Problem
from ffm.results.documents.analysis import Group, Sequence, SequenceOperation
from ffm.results.documents.benefit import Benefit
from ffm.results.documents.notes import AnyNote, UnlistedSequences
from ffm.results.documents.site import Site
from ffm.results.estimates import Estimates
from ffm.results.wholes import at_least, at_most
from ffm.stages.analysis.findings import Findings

LISTED_SEQUENCES = 1000
"""The document lists the sequences that save most; a note says how many more there are."""


def _worth_listing(site: Site) -> bool:
    return site.problem_count > 0 or site.benefit.bound_s > 0


def _conditional(sites: list[Site], members: list[int]) -> bool:
    return any(verdict.conditional for index in members for verdict in sites[index].synchronization)


def _order(group: Group) -> tuple[float, float]:
    return _worth(group.benefit)


def _worth(benefit: Benefit) -> tuple[float, float]:
    """Sort key that puts the largest savings first."""
    if benefit.replay_s is not None:
        return (-benefit.replay_s, -benefit.carry_s)
    return (-max(benefit.carry_s, benefit.bound_s), -benefit.bound_s)


def points_of(sites: list[Site]) -> list[Group]:
    """Return one group for each call stack by address, largest saving first."""
    points = [
        Group(
            name=f"{site.call} {site.file.rpartition('/')[2]}:{site.line}" if site.line else site.call,
            sites=[index],
            count=site.count,
            benefit=site.benefit,
            conditional=_conditional(sites, [index]),
        )
        for index, site in enumerate(sites)
        if _worth_listing(site)
    ]
    return sorted(points, key=_order)


def folds_of(estimates: Estimates, sites: list[Site], bound_s: NDArray[np.float64]) -> list[Group]:
    """Group by CUDA call and, within that, by calling function, template arguments dropped (Figure 5.3)."""
    calls: dict[str, dict[str, list[int]]] = {}
    for index, site in enumerate(sites):
        if _worth_listing(site):
            calls.setdefault(site.call, {}).setdefault(base_name(site.caller), []).append(index)
    parts = [(call, caller, members) for call, callers in calls.items() for caller, members in callers.items()]
    whole = {call: [site for part in callers.values() for site in part] for call, callers in calls.items()}

    def of_site(members: list[int]) -> Benefit | None:
        benefit = sites[members[0]].benefit
        return benefit if len(members) == 1 and benefit.replay_s is not None else None

    def benefits(groups: list[list[int]]) -> list[Benefit]:
        told = [of_site(members) for members in groups]  # replayed already, alone
        asked = [members for members, benefit in zip(groups, told, strict=True) if benefit is None]
        found = iter(estimates.of_sites(asked, np.array([bound_s[members].sum() for members in asked])))
        return [next(found) if benefit is None else benefit for benefit in told]

    def group(name: str, members: list[int], benefit: Benefit, parts: list[Group]) -> Group:
        return Group(
            name=name,
            sites=members,
            count=sum(sites[index].count for index in members),
            benefit=at_least(benefit, [part.benefit for part in parts] or [sites[index].benefit for index in members]),
            conditional=_conditional(sites, members),
            parts=sorted(parts, key=_order),
        )

    wholes, divided = list(whole.values()), [members for _, _, members in parts]
    of_parts = benefits(divided)
    of_wholes = of_parts if wholes == divided else benefits(wholes)  # each call may have one caller
    by_call: dict[str, list[Group]] = {call: [] for call in calls}
    for (call, caller, members), benefit in zip(parts, of_parts, strict=True):
        by_call[call].append(group(caller, members, benefit, []))
    folds = [group(call, whole[call], benefit, by_call[call]) for call, benefit in zip(whole, of_wholes, strict=True)]
    return sorted(folds, key=_order)


def everything_of(
    estimates: Estimates, bound_s: NDArray[np.float64], folds: abc.Sequence[Group], sequences: abc.Sequence[Sequence]
) -> Benefit:
    """Return what fixing all problems saves: at least what any fold or sequence does. `bound` adds up call stacks, as
    for a fold.
    """
    benefit = estimates.of_everything(float(bound_s.sum()))
    return at_least(benefit, [*(fold.benefit for fold in folds), *(sequence.benefit for sequence in sequences)])


def without_equal_bytes(findings: Findings, estimates: Estimates, everything: Benefit) -> Benefit | None:
    """Return what fixing all problems saves without the uploads that may be of other data; None if there are none."""
    if findings.equal_bytes is None:
        return None
    selected = (findings.timeline.problem != 0) & ~findings.equal_bytes
    return at_most(estimates.of_rows(selected), everything)


def sequences_of(
    findings: Findings, estimates: Estimates, sites: int
) -> tuple[list[Sequence], Membership, list[AnyNote]]:
    """Return the sequences that save most, the rows that belong to them, and a note if there are more."""
    found: abc.Sequence[FoundSequence]
    if findings.sequences:
        found, given = findings.sequences
        membership = Membership(given.line.copy(), given.offsets)
    else:
        found, membership = find_sequences(findings.timeline, sites)
    benefits = estimates.of_groups(membership.line, membership.sequence_of_line(), len(found))
    order = np.array(sorted(range(len(found)), key=lambda index: _worth(benefits[index]))[:LISTED_SEQUENCES], np.int64)
    listed = [(found[index], benefits[index]) for index in order]
    sequences = [
        Sequence(
            operations=[
                SequenceOperation(site=line.site, count=line.count, problems=_problems(line.problem))
                for line in sequence.lines
            ],
            recurrences=sequence.recurrences,
            ends_at=sequence.ends_at,
            benefit=benefit,
        )
        for sequence, benefit in listed
    ]
    unlisted: list[AnyNote] = []
    if len(found) > LISTED_SEQUENCES:
        unlisted.append(UnlistedSequences(found=len(found), listed=LISTED_SEQUENCES))
    return sequences, membership.reorder(order), unlisted


def _problems(problem: Problem) -> list[str]:
    synchronization = Problem.UNNECESSARY_SYNCHRONIZATION | Problem.MISPLACED_SYNCHRONIZATION
    names = {"synchronization": synchronization, "transfer": Problem.UNNECESSARY_TRANSFER}
    return [name for name, flags in names.items() if problem & flags]
