"""Which problems `ffm apply-remedy` corrects, and why it leaves the others to the programmer. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.remedy.correctable import (
    ALLOCATIONS,
    ASYNCHRONOUS_UPLOADS,
    DOWNLOADS,
    FREES,
    SETS,
    UNNECESSARY,
    UPLOADS,
    can_come_late,
    needs_more,
    no_wait_counts,
    repeats,
)
from ffm.remedy.plan_file import Correction, Planned
from ffm.remedy.reasons import (
    ComparingCostsAsMuch,
    LateCostsAsMuch,
    ManagedSet,
    NeededForMore,
    OtherAllocation,
    OtherDestination,
    OtherFunction,
    PartlyNeeded,
    Reason,
    Unmatched,
    UnseenAllocation,
    WaitsReliedOn,
    WaitsTooEarly,
)
from ffm.remedy.selection import choose, followed_destinations
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site


@dataclass(frozen=True, slots=True)
class Fitness:
    """What corrects a site automatically; if nothing does, `why_not` says why."""

    corrections: tuple[Correction, ...]
    why_not: Reason | None


def fitness(analysis: Analysis) -> dict[int, Fitness]:
    """Return the fitness of each site with a problem, by its index; nothing for imported results, which cannot be
    corrected.
    """
    if analysis.origin != "ffm":
        return {}
    chosen = {
        site: tuple(correction for correction in actions if correction is not None)
        for site, actions in choose(analysis, list(Correction)).items()
    }
    followed = followed_destinations(analysis)
    managed = {link.site for link in analysis.allocations if link.memory == "managed"}
    allocated: dict[int, set[int]] = {}
    for link in analysis.allocations:
        if link.role == "frees" and link.allocation is not None:
            allocated.setdefault(link.site, set()).add(link.allocation)
    return {
        index: Fitness(chosen[index], None)
        if chosen.get(index)
        else Fitness(
            (),
            OtherDestination()
            if site.function in UPLOADS | ASYNCHRONOUS_UPLOADS and index not in followed
            else _why_not(site, managed=index in managed, by=[analysis.sites[one] for one in allocated.get(index, ())]),
        )
        for index, site in enumerate(analysis.sites)
        if site.problem_count
    }


def left(analysis: Analysis, planned: list[Planned]) -> dict[int, Reason]:
    """For each site with a problem that is neither planned nor correctable, return why it is left unchanged."""
    corrected = {one.site for one in planned if one.corrections}
    return {index: fit.why_not for index, fit in fitness(analysis).items() if index not in corrected and fit.why_not}


def _why_not(site: Site, *, managed: bool, by: list[Site]) -> Reason:
    """Return the reason; `by` are the sites that allocate what the site frees."""
    if site.function in SETS and managed:
        return ManagedSet()
    needed = sum(verdict.occurrences for verdict in site.synchronization if verdict.kind not in UNNECESSARY)
    unseen = site.count - sum(verdict.occurrences for verdict in site.synchronization)
    if site.function in DOWNLOADS and unseen == 0:
        return _why_not_late(site)
    if site.function in FREES and not by:
        return UnseenAllocation()
    if site.function in FREES and all(allocation.function not in ALLOCATIONS for allocation in by):
        return OtherAllocation(tuple(sorted({allocation.call for allocation in by})))
    if site.kind == "synchronization" or site.function in FREES or site.function in UPLOADS:
        if unseen:
            return Unmatched(unseen, site.count)
        if needed == site.count:
            return WaitsTooEarly()
        return _needed_for_more(site) if site.function in FREES else PartlyNeeded(needed, site.count)
    if site.function in ASYNCHRONOUS_UPLOADS and repeats(site):
        return ComparingCostsAsMuch() if no_wait_counts(site) else WaitsReliedOn()
    return OtherFunction(site.function)


def _why_not_late(site: Site) -> Reason:
    return LateCostsAsMuch() if can_come_late(site) else _needed_for_more(site)


def _needed_for_more(site: Site) -> Reason:
    """Return what a site that cannot wait later is needed for."""
    need = next(verdict for verdict in site.synchronization if needs_more(verdict))
    return NeededForMore(need.occurrences, site.count, need.because)
