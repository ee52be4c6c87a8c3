"""Which call sites to correct, and how (dissertation 7.2, Figure 7.1).

A wait is removed only at sites where every observed occurrence was unnecessary or only ordered streams. Some may have
been needed for timing: then corrections make sure that the work is over before the program reads a clock
(`native/correction/calls/clock_payments.h`). A download's wait moves to the first use of its destination, wherever that
is (`native/correction/downloads`). That is correct whether or not the occurrence is needed, so sites with both kinds
are chosen if that pays off. A transfer is staged or reused only if the results say that this saves time; each call
checks that its bytes are right (`native/correction/calls/uploads.c`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from ffm.driver.catalogue import Direction, DriverFunction, Kind, Memory, Shape, load_catalogue
from ffm.errors import FfmError
from ffm.remedy.layout import PLAN, PLAN_MAGIC, SITE, constant
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site, Verdict
from ffm.results.vocabulary import Because

UNNECESSARY = ("unnecessary", "conditionally unnecessary")
REPEATED = ("no-op", "repeat", "copy")


def _names(fits: Callable[[DriverFunction], bool]) -> frozenset[str]:
    return frozenset(function.name for function in load_catalogue().functions if fits(function))


def _transfers(*directions: Direction, asynchronous: bool) -> frozenset[str]:
    return _names(
        lambda function: (
            function.kind is Kind.TRANSFER
            and function.shape is Shape.PLAIN
            and function.direction in directions
            and function.asynchronous == asynchronous
        )
    )


# Names of driver functions, as `Site.function` has them.
ALLOCATIONS = _names(lambda f: (f.kind, f.memory, f.shape) == (Kind.ALLOCATION, Memory.DEVICE, Shape.PLAIN))
FREES = _names(lambda f: (f.kind, f.memory, f.shape) == (Kind.FREE, Memory.DEVICE, Shape.PLAIN))
SETS = _names(lambda f: f.kind is Kind.SET)
UPLOADS = _transfers(Direction.HOST_TO_DEVICE, asynchronous=False)
ASYNCHRONOUS_UPLOADS = _transfers(Direction.HOST_TO_DEVICE, Direction.GENERIC, asynchronous=True)
DOWNLOADS = _transfers(Direction.DEVICE_TO_HOST, asynchronous=False)

LATE_S, LATE_BYTE_S = 60e-6, 0.3e-9
"""Seconds that deferring a download costs a call whose result is used at once, per call and per byte: its pages are
closed and opened, a fault is handled, the GPU writes a word, and closed pages are written one by one. Twice the cost
measured on the virtual GPU (2-core Xeon VM).
"""

LEAST = 0.1
"""The share of that cost that a call counts whose result nobody looks at, or only after another wait. It is delivered
at a wait that the program makes anyway, or never, at little cost; but a site that saves almost nothing is better left
alone.
"""

COMPARE_S, COMPARE_BYTE_S = 5e-6, 0.1e-9
"""Seconds of CPU time that comparing an upload with the device's content costs per call, and per byte, which is hashed.
An asynchronous upload from pinned memory may cost the CPU less than that.
"""


class Remedy(StrEnum):
    """A kind of correction; the values are the command's options."""

    HOIST = "cudaFree-hoist"
    SKIP = "skip-syncs"
    ASYNCHRONOUS = "async-transfers"
    REUSE = "reuse-uploads"


@dataclass(frozen=True, slots=True)
class Planned:
    """A site and what to do there: a sum of `FFM_REMEDY_` flags."""

    site: int
    key: bytes
    function: int
    actions: int
    remedies: tuple[Remedy, ...]
    """The problems remedied; none at sites that only take part, such as the allocations of memory freed elsewhere."""
    unit: int = 0
    """Sites of one unit are corrected together, or not at all; units are numbered from 0."""
    pace: int = 0
    """At the one site of a unit whose calls pace its trial, how many were recorded; else 0. Without such a site there
    is no trial.
    """


def plan(analysis: Analysis, remedies: Collection[Remedy], among: Collection[int] | None = None) -> list[Planned]:
    """From all problem sites, or from the sites `among`, choose those that the remedies fit.

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
    chosen = choose(analysis, remedies, among)
    unit = _units(analysis, chosen)
    paces = _paces(analysis, chosen, unit)
    return [
        Planned(
            site=number,
            key=bytes.fromhex(analysis.stacks[analysis.sites[number].stack].key),
            function=catalogue[analysis.sites[number].function].index,
            actions=_union(actions.values()),
            remedies=tuple(remedy for remedy in actions if remedy is not None),
            unit=unit[number],
            pace=analysis.sites[number].count if number in paces else 0,
        )
        for number, actions in sorted(chosen.items())
    ]


Actions = dict[Remedy | None, int]
"""Flags of each remedy at one site. Those of None only take part, such as the allocations of memory freed elsewhere."""


def choose(
    analysis: Analysis, remedies: Collection[Remedy], among: Collection[int] | None = None
) -> dict[int, Actions]:
    """Return what to do at each site; arguments as for `plan`."""
    chosen = range(len(analysis.sites)) if among is None else among
    followed = followed_destinations(analysis)
    flags: dict[int, Actions] = {}

    def add(site: int, remedy: Remedy | None, *names: str) -> None:
        actions = flags.setdefault(site, {})
        actions[remedy] = actions.get(remedy, 0) | sum(constant(f"FFM_REMEDY_{name}") for name in names)

    for number in chosen:
        site = analysis.sites[number]
        idle = ["NO_WAIT"] if _waits_idly(site) else []
        if Remedy.SKIP in remedies and can_be_skipped(site):
            add(number, Remedy.SKIP, "SKIP", *_timed(site))
        if site.function in UPLOADS | ASYNCHRONOUS_UPLOADS and number not in followed:
            continue
        if Remedy.ASYNCHRONOUS in remedies and can_be_staged(site):
            add(number, Remedy.ASYNCHRONOUS, "ASYNCHRONOUS", "NO_WAIT", *_timed(site))
        if Remedy.REUSE in remedies and _repeats(site):
            add(number, Remedy.REUSE, "REUSE", *idle)
            for first in _firsts(site):
                if analysis.sites[first].function not in ASYNCHRONOUS_UPLOADS or no_wait_counts(analysis.sites[first]):
                    add(first, None, "REUSE", *(["NO_WAIT"] if _waits_idly(analysis.sites[first]) else []))
    if Remedy.HOIST in remedies:
        for link in analysis.allocations:
            if link.role != "frees" or link.site not in chosen or link.allocation is None:
                continue
            free, allocation = analysis.sites[link.site], analysis.sites[link.allocation]
            if free.function in FREES and allocation.function in ALLOCATIONS and can_come_late(free):
                add(link.site, Remedy.HOIST, "POOL_FREE", *_timed(free))
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
        if link.role == "frees" and link.allocation in chosen and Remedy.HOIST in chosen.get(link.site, {}):
            yield link.site, link.allocation
    for number, actions in chosen.items():
        if Remedy.REUSE in actions:
            yield from ((number, first) for first in _firsts(analysis.sites[number]) if first in chosen)


def _paces(analysis: Analysis, chosen: dict[int, Actions], unit: dict[int, int]) -> set[int]:
    """Return, for each unit, its site with a problem that is called most often."""
    most: dict[int, int] = {}
    for number in sorted(number for number, actions in chosen.items() if any(remedy is not None for remedy in actions)):
        rival = most.get(unit[number])
        if rival is None or analysis.sites[number].count > analysis.sites[rival].count:
            most[unit[number]] = number
    return set(most.values())


MEMORY_BYTES = 256 << 20
"""The host memory, and the device memory, that corrections may take by default; at most a quarter of what is
free.
"""


def write_plan(planned: Iterable[Planned], path: Path, memory_bytes: int = MEMORY_BYTES) -> list[Planned]:
    """Write the sites for the correcting library; return them in the file's order, their units numbered from 0."""
    ordered = sorted(planned, key=lambda site: (site.key, site.function))
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(site.unit for site in ordered))}
    ordered = [replace(site, unit=numbers[site.unit]) for site in ordered]
    sites = (SITE.pack(site.key, site.function, site.actions, site.unit, site.pace) for site in ordered)
    header = PLAN.pack(PLAN_MAGIC, constant("FFM_REMEDY_VERSION"), len(ordered), memory_bytes)
    path.write_bytes(header + b"".join(sites))
    return ordered


def closes_host_memory(planned: Planned) -> bool:
    """Return whether a correction may close host memory until the GPU is done with it, so that accesses by the C
    library must be guarded. Where a wait is removed, transfers may be under way.
    """
    waits = ("SKIP", "NO_WAIT", "POOL_FREE", "ASYNCHRONOUS")
    return any(planned.actions & constant(f"FFM_REMEDY_{action}") for action in waits)


def awaits_clocks(planned: Planned) -> bool:
    """Return whether waits are removed that must be completed before the next read of a clock."""
    return bool(planned.actions & constant("FFM_REMEDY_CLOCK"))


def delivers_late(planned: Planned) -> bool:
    """Return whether downloads of the site are deferred."""
    name = load_catalogue()[planned.function].name
    return name in DOWNLOADS and bool(planned.actions & constant("FFM_REMEDY_ASYNCHRONOUS"))


def never_needed(site: Site) -> bool:
    """Return whether every occurrence of the site waited for nothing, or only so that work on another stream comes
    later. The device keeps that order when a wait is removed (`native/order.h`).
    """
    return _all(site, _needs_nothing)


def _needs_nothing(verdict: Verdict) -> bool:
    return verdict.kind in UNNECESSARY or verdict.because is Because.ORDERS_STREAMS


def _timed(site: Site) -> list[str]:
    """Return the action for waits that the next read of a clock may rely on. What is needed for its data may be needed
    for timing, too: a verdict has one reason.
    """
    return [] if never_needed(site) else ["CLOCK"]


def can_be_skipped(site: Site) -> bool:
    """Return whether an explicit synchronization can return at once: no occurrence was needed, or, where some were
    unnecessary, the others only for timing.
    """
    if site.kind != "synchronization":
        return False
    some = any(verdict.kind in UNNECESSARY for verdict in site.synchronization)
    timed = _all(site, lambda verdict: _needs_nothing(verdict) or verdict.because is Because.HOST_TIMER)
    return never_needed(site) or (some and timed)


def _all(site: Site, good: Callable[[Verdict], bool]) -> bool:
    seen = sum(verdict.occurrences for verdict in site.synchronization if good(verdict))
    return seen == site.count > 0 and all(good(verdict) for verdict in site.synchronization)


def can_be_staged(site: Site) -> bool:
    """Return whether a transfer can do without its wait, or wait later. An upload's wait may also have protected its
    source from being overwritten: staging copies the bytes first.
    """

    def staged(verdict: Verdict) -> bool:
        return verdict.kind in UNNECESSARY or verdict.because is Because.SOURCE_OVERWRITTEN

    if site.function in UPLOADS:
        return _all(site, staged)
    return site.function in DOWNLOADS and can_come_late(site) and pays(site)


GUARDED = (
    Because.RESULT_USED,
    Because.RESULT_USED_UNSEEN,
    Because.SOURCE_OVERWRITTEN,
    Because.SOURCE_OVERWRITTEN_UNSEEN,
    Because.ORDERS_STREAMS,
)
"""Needs that a wait at the first use satisfies: memory is closed until the GPU is done with it, and the device keeps
streams in order.
"""


def needs_more(verdict: Verdict) -> bool:
    """Return whether occurrences are needed for something that waiting later does not satisfy, such as a timer that
    nobody sees read.
    """
    return verdict.kind not in UNNECESSARY and verdict.because not in (*GUARDED, Because.HOST_TIMER)


def can_come_late(site: Site) -> bool:
    """Return whether a download or a free can wait at the first use of what it protects, or when the program reads a
    clock.
    """
    return _all(site, lambda verdict: not needs_more(verdict))


def pays(site: Site) -> bool:
    """Return whether a download is expected to save more than deferring it costs."""
    return site.staged_s > late_cost_s(site)


def late_cost_s(site: Site) -> float:
    """Return the seconds that deferring a site's downloads costs."""
    share = LEAST + (1 - LEAST) * _looked_at(site)
    return share * (LATE_S * site.count + LATE_BYTE_S * site.bytes)


def _looked_at(site: Site) -> float:
    """Return the share of a site's downloads that are delivered because the CPU looks at them. None are where other
    waits stay that deliver them.
    """
    if never_needed(site):
        return 0.0
    use = site.download
    return 1 - use.untouched / use.occurrences if use is not None and use.occurrences else 1.0


def repeats(site: Site) -> bool:
    """Return whether a site was seen to send bytes that the device already holds."""
    return any(verdict.kind in REPEATED for verdict in site.transfer)


def no_wait_counts(site: Site) -> bool:
    """Return whether nothing relies on waits of asynchronous uploads: they did not wait, or no wait was needed. An
    upload from pageable memory may be "synchronous with respect to host" (CUDA Runtime API, "API synchronization
    behavior"). Occurrences with a verdict on what they carry, but none on a wait, did not wait.
    """
    matched = sum(verdict.occurrences for verdict in site.transfer) == site.count
    idle = matched and all(_needs_nothing(verdict) for verdict in site.synchronization)
    return not site.synchronization or never_needed(site) or idle


def _waits_idly(site: Site) -> bool:
    """Return whether a site was seen to wait, and nothing relied on it."""
    some = bool(site.synchronization) and site.function in ASYNCHRONOUS_UPLOADS
    return never_needed(site) or (some and no_wait_counts(site))


def pays_to_compare(site: Site) -> bool:
    """Return whether a site's asynchronous uploads are expected to save more than comparing them costs."""
    return site.staged_s > COMPARE_S * site.count + COMPARE_BYTE_S * site.bytes


def _repeats(site: Site) -> bool:
    if site.function in ASYNCHRONOUS_UPLOADS:
        return repeats(site) and no_wait_counts(site) and pays_to_compare(site)
    return site.function in UPLOADS and repeats(site)


def _firsts(site: Site) -> list[int]:
    """Return other sites whose uploads this one repeats: the cache must hold them."""
    return [verdict.first for verdict in site.transfer if verdict.first is not None and verdict.kind in REPEATED]


def _union(actions: Iterable[int]) -> int:
    result = 0
    for action in actions:
        result |= action
    return result
