"""The sites to correct, as the correcting library reads them from a file, and what they ask of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from ffm.driver.catalogue import load_catalogue
from ffm.remedy.correctable import DOWNLOADS
from ffm.remedy.layout import PLAN, PLAN_MAGIC, SITE, constant


class Correction(StrEnum):
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
    corrections: tuple[Correction, ...]
    """The problems corrected; none at sites that only take part, such as the allocations of memory freed elsewhere."""
    unit: int = 0
    """Sites of one unit are corrected together, or not at all; units are numbered from 0."""
    pace: int = 0
    """At the one site of a unit whose calls pace its trial, how many were recorded; else 0. Without such a site there
    is no trial.
    """


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
