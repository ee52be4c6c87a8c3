"""What is known about a call site with a problem, and what its remedy consists of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ffm.report.frameworks import Framework, PackageCall
from ffm.report.remedies.library_calls import LibraryCall
from ffm.report.remedies.thrust_calls import ThrustCall
from ffm.results.vocabulary import Because


class RemedyKind(StrEnum):
    """The kinds of problems that have their own remedy."""

    MEMORY_MANAGEMENT = "memory management"
    """A free that waits (dissertation 6.2)."""
    SYNCHRONOUS_TRANSFER = "synchronous transfer"
    """A transfer that waits although nothing needs it to (6.1)."""
    REPEATED_TRANSFER = "repeated transfer"
    UNNECESSARY_SYNCHRONIZATION = "unnecessary synchronization"
    """An explicit synchronization that nothing relies on (6.3)."""
    MISPLACED_SYNCHRONIZATION = "misplaced synchronization"
    """A needed synchronization that comes long before its result is used (6.3)."""
    PARTIAL_DOWNLOAD = "download of data that nobody touches"
    MANAGED_MEMSET = "memset on managed memory"
    """A set that waits because the CPU can access the memory (the dissertation's AMG)."""


MEMORY_OF = {"frees": "the buffer", "host memory": "the host memory", "destination": "the destination"}
"""What the places call the memory of each role."""


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """Memory of `occurrences` of a call. `role` is `frees`, `host memory` or `destination`; unknown sites are None."""

    role: str
    memory: str
    allocation: int | None
    release: int | None
    occurrences: int = 1


@dataclass(frozen=True, slots=True)
class PartialDownload:
    """Downloads at one place of which the CPU touches a small part."""

    bytes: int
    """Mean size of one download."""
    touched_bytes: int
    """Upper limit, over all of them."""
    first: int
    """Offset of the first byte that is touched in any of them,"""
    last: int
    """and of the end of the last."""
    watched: int
    """Downloads for which this is known, out of all `of`."""
    of: int
    untouched: int
    """Watched downloads of which nothing was touched before they were overwritten or freed."""
    text: str
    """The same as a sentence."""
    saving_s: float
    """Upper limit of what downloading only that part saves."""


@dataclass(frozen=True, slots=True)
class ProblemSite:
    """A call site with a problem. Sites are numbers of the analysis; times are in seconds."""

    site: int
    call: str
    kind: str
    """The model's kind: `synchronization`, `transfer`, `free` or `other`."""
    sets_memory: bool
    """Whether the call sets memory instead of copying."""
    count: int
    unnecessary: int
    """Occurrences whose synchronization nothing relied on, including conditional ones."""
    misplaced: int
    no_op: int
    repeat: int
    """Transfers of bytes that went to the same place before, which was written or reallocated since."""
    changed: int
    """Transfers of bytes that were not transferred before, besides the first of those that are repeated."""
    keep: tuple[int, ...]
    """Synchronizations that must stay; the site itself where a later call of it must."""
    memory: tuple[MemoryLink, ...]
    benefit_s: float
    """By the estimator used for sorting."""
    from_pool: bool = True
    """Whether what a free releases could come from cudaMallocAsync: plain device memory."""
    downloads: bool = False
    """Whether the call copies from the device."""
    bytes: int = 0
    """How many bytes a call moves on average; 0 if it moves none, or that is unknown."""
    unseen: int = 0
    """Transfers of bytes that went to the same place before, whose content was not looked at."""
    from_elsewhere: int = 0
    """Of all that are repeated, those of bytes that lie elsewhere in host memory than those sent there before."""
    elsewhere: int = 0
    """Transfers of bytes that had been transferred to or from another place before, without such a first one."""
    download: PartialDownload | None = None
    framework: Framework | None = None
    """The Python package through which the call is made; None for a program that is not in Python."""
    package_call: PackageCall | None = None
    """The function of a Python package that the program calls; None if there is none."""
    own_thread: bool = False
    """Whether the package makes the call on a thread that runs no Python."""
    in_copy: bool = False
    """Whether a copy of that package makes the call, which a program cannot remove by itself."""
    copy_needed: bool = False
    """Whether a download at the same line itself waits, and something relies on that."""
    in_upload: bool = False
    """Whether that copy uploads."""
    needed_for: tuple[tuple[Because, int], ...] = ()
    """Why occurrences whose synchronization is needed are, and how many."""
    unrecorded: int = 0
    """Waits for events that were not recorded before."""
    library: LibraryCall | None = None
    """The library that makes the call for the program, if it is one without known lines."""
    thrust: ThrustCall | None = None
    """What Thrust makes the call for, if it makes it."""
    loads_code: bool = False
    """Whether the call loads device code."""
    at_exit: bool = False
    """Whether a library makes the call when the program ends."""

    @property
    def repeated(self) -> int:
        """How many transfers brought bytes that went to the same place before."""
        return self.no_op + self.repeat + self.unseen


@dataclass(frozen=True, slots=True)
class PlaceToChange:
    """A place in the program that the remedy changes: the call itself, an allocation, a free."""

    role: str
    site: int


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to change for one call site. `steps` are sentences, in order."""

    kind: RemedyKind
    site: int
    occurrences: int
    of: int
    steps: tuple[str, ...]
    places: tuple[PlaceToChange, ...]
    keep: tuple[int, ...]
    benefit_s: float


def remedy_for(problem: ProblemSite, kind: RemedyKind, occurrences: int, steps: list[str], *roles: str) -> Remedy:
    """Assemble a remedy; `roles` selects the memory whose places change together with the call."""
    places = [PlaceToChange("call", problem.site)]
    for link in problem.memory:
        if link.role not in roles:
            continue
        if link.allocation is not None:
            places.append(PlaceToChange(f"allocation of {MEMORY_OF[link.role]}", link.allocation))
        if link.release is not None and link.release != problem.site:
            places.append(PlaceToChange(f"free of {MEMORY_OF[link.role]}", link.release))
    return Remedy(
        kind=kind,
        site=problem.site,
        occurrences=occurrences,
        of=problem.count,
        steps=tuple(steps),
        places=tuple(dict.fromkeys(places)),
        keep=problem.keep,
        benefit_s=problem.benefit_s,
    )
