"""Which problems `ffm apply-remedy` corrects, and why it leaves the others to the programmer. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.remedy.selection import (
    ALLOCATIONS,
    ASYNCHRONOUS_UPLOADS,
    DOWNLOADS,
    FREES,
    SETS,
    UNNECESSARY,
    UPLOADS,
    Planned,
    Remedy,
    choose,
    guards_itself,
    needs_more,
    no_wait_counts,
    repeats,
)
from ffm.results.documents.analysis import Analysis, Site
from ffm.results.vocabulary import WORDS

MANAGED_SET = (
    "once it returns, the program may use all managed memory, which kernels may still be writing. If it returned "
    "early, all of that memory would have to be closed until the kernels finish, and a kernel that waits for another "
    "thread to write there would wait forever"
)


@dataclass(frozen=True, slots=True)
class Fitness:
    """What corrects a site automatically; if nothing does, `why_not` says why."""

    remedies: tuple[Remedy, ...]
    why_not: str


def fitness(analysis: Analysis) -> dict[int, Fitness]:
    """Return the fitness of each site with a problem, by its index; nothing for imported results, which cannot be
    corrected.
    """
    if analysis.origin != "ffm":
        return {}
    chosen = {
        site: tuple(remedy for remedy in actions if remedy is not None)
        for site, actions in choose(analysis, list(Remedy)).items()
    }
    managed = {link.site for link in analysis.allocations if link.memory == "managed"}
    allocated: dict[int, set[int]] = {}
    for link in analysis.allocations:
        if link.role == "frees" and link.allocation is not None:
            allocated.setdefault(link.site, set()).add(link.allocation)
    return {
        index: Fitness(chosen[index], "")
        if chosen.get(index)
        else Fitness(
            (), _why_not(site, managed=index in managed, by=[analysis.sites[one] for one in allocated.get(index, ())])
        )
        for index, site in enumerate(analysis.sites)
        if site.problem_count
    }


def left(analysis: Analysis, planned: list[Planned]) -> dict[int, str]:
    """For each site with a problem that is neither planned nor correctable, return why it is left unchanged."""
    remedied = {one.site for one in planned if one.remedies}
    return {index: fit.why_not for index, fit in fitness(analysis).items() if index not in remedied and fit.why_not}


def _why_not(site: Site, *, managed: bool, by: list[Site]) -> str:
    """Return the reason; `by` are the sites that allocate what the site frees."""
    if site.function in SETS and managed:
        return MANAGED_SET
    needed = sum(verdict.occurrences for verdict in site.synchronization if verdict.kind not in UNNECESSARY)
    unseen = site.count - sum(verdict.occurrences for verdict in site.synchronization)
    if site.function in DOWNLOADS and unseen == 0:
        return _why_not_late(site)
    if site.function in FREES and not by:
        return "the allocation of the memory that it frees was not observed"
    if site.function in FREES and all(allocation.function not in ALLOCATIONS for allocation in by):
        calls = " and ".join(sorted({allocation.call for allocation in by}))
        return f"the memory that it frees is allocated by {calls}; ffm keeps only that of cudaMalloc"
    if site.kind == "synchronization" or site.function in FREES or site.function in UPLOADS:
        if unseen:
            return f"{unseen:,} of {site.count:,} occurrences could not be matched between the runs"
        if needed == site.count:
            return "it is needed, but waits too early: moving it requires a change of the source"
        return f"{needed:,} of {site.count:,} occurrences are needed; only waits of downloads can be moved"
    if site.function in ASYNCHRONOUS_UPLOADS and repeats(site):
        if no_wait_counts(site):
            return "comparing the bytes with what the device holds would cost as much as it saves"
        return "some of its calls waited, and the program may rely on that wait"
    return (
        "ffm corrects cudaMemcpy, cudaFree, explicit synchronizations and repeated asynchronous uploads, not "
        f"{site.function}"
    )


def _why_not_late(site: Site) -> str:
    if not guards_itself(site):
        needs = [verdict for verdict in site.synchronization if needs_more(verdict)]
        return f"of {site.count:,} occurrences {needs[0].occurrences:,} are needed: {WORDS[needs[0].because]}"
    return "delivering the data later would cost as much as it saves"
