"""Which call sites to correct, and how (dissertation 7.2, Figure 7.1).

A wait is removed only at sites where every observed occurrence was unnecessary or only ordered streams. Some may have
been needed for timing: then corrections make sure that the work is over before the program reads a clock
(`native/correction/calls/clock_payments.h`). A download's wait moves to the first use of its destination, wherever that
is (`native/correction/downloads`). That is correct whether or not the occurrence is needed, so sites with both kinds
are chosen if that pays off. A transfer is staged or reused only if the results say that this saves time; each call
checks that its bytes are right (`native/correction/calls/uploads.c`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Memory
from ffm.errors import FfmError
from ffm.remedy.correctable import (
    ALLOCATIONS,
    ASYNCHRONOUS_UPLOADS,
    FREES,
    UPLOADS,
    can_be_reused,
    can_be_skipped,
    can_be_staged,
    can_come_late,
    no_wait_counts,
    repeated_sites,
    timed_actions,
    waits_idly,
)
from ffm.remedy.layout import constant
from ffm.remedy.plan_file import Correction, Planned
from ffm.results.documents.analysis import Analysis


def plan(
    analysis: Analysis, corrections: Collection[Correction], among: Collection[int] | None = None
) -> list[Planned]:
    """From all problem sites, or from the sites `among`, choose those that the corrections fit.

    Raises:
        FfmError: The results prove nothing, or were imported, so that their stacks cannot be recognized.
    """
    if analysis.origin == "quick":
        raise FfmError(
            "these results are of one traced run, which proves nothing that could be corrected. Measure the program "
            "with `ffm run ./program` first."
        )
    if analysis.origin != "ffm":
        raise FfmError(
            f"these results were imported from {analysis.origin}: their stacks cannot be recognized in a running "
            "program. Measure it with `ffm run ./program` first."
        )
    catalogue = load_catalogue()
    chosen = choose(analysis, corrections, among)
    unit = _units(analysis, chosen)
    paces = _paces(analysis, chosen, unit)
    return [
        Planned(
            site=number,
            key=bytes.fromhex(analysis.stacks[analysis.sites[number].stack].key),
            function=catalogue[analysis.sites[number].function].index,
            actions=_union(actions.values()),
            corrections=tuple(correction for correction in actions if correction is not None),
            unit=unit[number],
            pace=analysis.sites[number].count if number in paces else 0,
        )
        for number, actions in sorted(chosen.items())
    ]


Actions = dict[Correction | None, int]
"""The flags of each correction at a site; of None at sites that only take part, such as allocations of freed memory."""


def choose(
    analysis: Analysis, corrections: Collection[Correction], among: Collection[int] | None = None
) -> dict[int, Actions]:
    """Return what to do at each site; arguments as for `plan`."""
    chosen = range(len(analysis.sites)) if among is None else among
    followed = followed_destinations(analysis)
    flags: dict[int, Actions] = {}

    def add(site: int, correction: Correction | None, *names: str) -> None:
        actions = flags.setdefault(site, {})
        actions[correction] = actions.get(correction, 0) | sum(constant(f"FFM_REMEDY_{name}") for name in names)

    for number in chosen:
        site = analysis.sites[number]
        idle = ["NO_WAIT"] if waits_idly(site) else []
        if Correction.SKIP in corrections and can_be_skipped(site):
            add(number, Correction.SKIP, "SKIP", *timed_actions(site))
        if site.function in UPLOADS | ASYNCHRONOUS_UPLOADS and number not in followed:
            continue
        if Correction.ASYNCHRONOUS in corrections and can_be_staged(site):
            add(number, Correction.ASYNCHRONOUS, "ASYNCHRONOUS", "NO_WAIT", *timed_actions(site))
        if Correction.REUSE in corrections and can_be_reused(site):
            add(number, Correction.REUSE, "REUSE", *idle)
            for first in repeated_sites(site):
                if analysis.sites[first].function not in ASYNCHRONOUS_UPLOADS or no_wait_counts(analysis.sites[first]):
                    add(first, None, "REUSE", *(["NO_WAIT"] if waits_idly(analysis.sites[first]) else []))
    if Correction.HOIST in corrections:
        for link in analysis.allocations:
            if link.role != "frees" or link.site not in chosen or link.allocation is None:
                continue
            free, allocation = analysis.sites[link.site], analysis.sites[link.allocation]
            if free.function in FREES and allocation.function in ALLOCATIONS and can_come_late(free):
                add(link.site, Correction.HOIST, "POOL_FREE", *timed_actions(free))
                add(link.allocation, None, "POOL_ALLOCATION")
    catalogue = load_catalogue()
    return {number: actions for number, actions in flags.items() if analysis.sites[number].function in catalogue}


def followed_destinations(analysis: Analysis) -> set[int]:
    """Return the sites that always send to device memory whose allocation and free corrections follow. Variables of the
    device, for example, are not such memory.
    """
    occurrences: dict[int, int] = {}
    for link in analysis.allocations:
        allocated = link.allocation is not None and analysis.sites[link.allocation].function in ALLOCATIONS
        if link.role == "destination" and (allocated or link.memory == Memory.ASYNCHRONOUS):
            occurrences[link.site] = occurrences.get(link.site, 0) + link.occurrences
    return {number for number, seen in occurrences.items() if seen >= analysis.sites[number].count}


def _units(analysis: Analysis, chosen: dict[int, Actions]) -> dict[int, int]:
    """Number the sets of sites that depend on each other: frees and the allocations of what they free, repeated uploads
    and the uploads that they repeat.
    """
    leader = {number: number for number in chosen}

    def find(number: int) -> int:
        while leader[number] != number:
            number = leader[number] = leader[leader[number]]
        return number

    for number, partner in _partners(analysis, chosen):
        leader[find(number)] = find(partner)
    numbers = {first: place for place, first in enumerate(sorted({find(number) for number in chosen}))}
    return {number: numbers[find(number)] for number in chosen}


def _partners(analysis: Analysis, chosen: dict[int, Actions]) -> Iterator[tuple[int, int]]:
    for link in analysis.allocations:
        if link.role == "frees" and link.allocation in chosen and Correction.HOIST in chosen.get(link.site, {}):
            yield link.site, link.allocation
    for number, actions in chosen.items():
        if Correction.REUSE in actions:
            yield from ((number, first) for first in repeated_sites(analysis.sites[number]) if first in chosen)


def _paces(analysis: Analysis, chosen: dict[int, Actions], unit: dict[int, int]) -> set[int]:
    """Return, for each unit, its site with a problem that is called most often."""
    most: dict[int, int] = {}
    for number in sorted(number for number, actions in chosen.items() if set(actions) != {None}):
        rival = most.get(unit[number])
        if rival is None or analysis.sites[number].count > analysis.sites[rival].count:
            most[unit[number]] = number
    return set(most.values())


def _union(actions: Iterable[int]) -> int:
    result = 0
    for action in actions:
        result |= action
    return result
