"""The rows of what a run waits for: its regions, patterns of waiting, GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from ffm.report.numbers import Scale
from ffm.results.documents.waiting import UsedGpu, Waiting
from ffm.results.waiting.regions import Regions

LISTED_BLAMED = 3
"""Regions that are listed as those most to blame."""


@dataclass(frozen=True, slots=True)
class RegionRow:
    """A region. `number` names it on the command line. `path_s` is the part of `total_s` on the path.

    `kind` is `CPU`, `call`, `kernel` or `transfer`. `tenth_s` is what the run would save if it were 10 % faster, and
    `gone_s` if it were gone; None if that was not tried. `blamed_s` is, for GPU work, how long the CPU waited for it,
    otherwise how long the GPU was idle meanwhile. `threads_s` is how long other threads waited for it.
    """

    number: int
    kind: str
    name: str
    place: str
    count: int
    total_s: float
    path_s: float
    path_percent: float
    blamed_s: float
    threads_s: float
    tenth_s: float | None
    gone_s: float | None


@dataclass(frozen=True, slots=True)
class PatternRow:
    """How often a pattern of waiting occurred, and for how long."""

    name: str
    meaning: str
    count: int
    seconds: float


@dataclass(frozen=True, slots=True)
class GpuRow:
    """How a process used a GPU from its first work there to its last. Seconds.

    `device` is the GPU's number in the process, from 0; None if it is not known, so that all of them count as one.
    `idle_s` is without any work, `compute_idle_s` without a kernel, `unhidden_s` with transfers alone, and
    `copy_overlap_s` with transfers beside kernels.
    """

    process: int
    device: int | None
    lasting_s: float
    idle_s: float
    compute_idle_s: float
    unhidden_s: float
    copy_overlap_s: float


def percent_of(seconds: float, length_s: float) -> float:
    """Return the share of a path of some length; 0 if it has none."""
    return 100 * seconds / length_s if length_s > 0 else 0.0


def region_row(waiting: Waiting, number: int) -> RegionRow:
    """Return the row of a region, by its number from 0."""
    region = waiting.regions[number]
    return RegionRow(
        number=number + 1,
        kind=region.kind,
        name=region.name,
        place=region.place,
        count=region.count,
        total_s=region.total_s,
        path_s=region.path_s,
        path_percent=percent_of(region.path_s, waiting.length_s),
        blamed_s=region.blamed_s,
        threads_s=region.threads_s,
        tenth_s=region.tenth_s,
        gone_s=region.gone_s,
    )


def region_title(found: Regions, number: int) -> str:
    """Return a region's kind, name and place; empty for several regions, and for a call that only waited."""
    if not 0 <= number < len(found.regions):
        return ""
    region = found.regions[number]
    return f"{region.kind} {region.name} {region.place}".rstrip()


def most_blamed(waiting: Waiting, kinds: tuple[str, ...]) -> list[RegionRow]:
    """Return the regions of some kinds that are most to blame."""
    return rows_with_most(waiting, [one.blamed_s if one.kind in kinds else 0.0 for one in waiting.regions])


def rows_with_most(waiting: Waiting, seconds: list[float]) -> list[RegionRow]:
    """Return the regions with the most seconds."""
    ordered = sorted((number for number, each in enumerate(seconds) if each > 0), key=lambda number: -seconds[number])
    return [region_row(waiting, number) for number in ordered[:LISTED_BLAMED]]


def pattern_rows(waiting: Waiting, scale: Scale) -> list[PatternRow]:
    """Return the patterns that occurred; their meanings contain times."""
    on_kernels = scale.seconds(waiting.early_on_kernels_s)
    early = f"waited for GPU work that was not over; {on_kernels} of it while kernels ran"
    rows = [
        ("early synchronization", early, waiting.early),
        ("late synchronization", "a synchronization for work that was over", waiting.late),
        ("polling", "queries that found work unfinished, up to the one that did not", waiting.polling),
        ("synchronous offload", "work that the CPU waited for as soon as it had started it", waiting.offload),
        ("late transfer", "a kernel could only begin after a transfer that no kernel hid", waiting.late_transfer),
        ("consecutive transfers", "copies the same way as the one just before, with their calls", waiting.consecutive),
        ("launch delay", "from a launch to its kernel on an idle GPU", waiting.launch_delay),
        ("late sender", "a receiver came before its sender", waiting.late_sender),
        ("late receiver", "a sender waited until its receiver came", waiting.late_receiver),
        ("wait in collective", "processes came early to a collective operation", waiting.collective),
        ("wait at barrier", "threads of a process came early to a barrier", waiting.barrier),
        ("load imbalance", "threads ended before the last of those joined together", waiting.imbalance),
        ("lock", "threads that waited for a lock or the like, until another one let it go", waiting.locks),
    ]
    return [PatternRow(name, meaning, found.count, found.seconds) for name, meaning, found in rows if found.count]


def gpu_row(use: UsedGpu) -> GpuRow:
    """Return the row of one GPU's use."""
    return GpuRow(
        process=use.process + 1,
        device=use.device,
        lasting_s=use.lasting_s,
        idle_s=use.idle_s,
        compute_idle_s=use.compute_idle_s,
        unhidden_s=use.unhidden_s,
        copy_overlap_s=use.copy_overlap_s,
    )
