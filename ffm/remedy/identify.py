"""What a developer should change to mend a problem, and every place that must change with it (dissertation, chapter 6).

Pure functions over what stage 5 found of a call site. The change is told in the terms of CUDA 11.2 and newer, which has
stream-ordered allocation (`cudaMallocAsync`), as the dissertation did not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ffm.remedy.frameworks import Framework


class RemedyKind(StrEnum):
    """The kinds of problems that have a remedy of their own."""

    MEMORY_MANAGEMENT = "memory management"
    """A free that waits (dissertation 6.2)."""
    SYNCHRONOUS_TRANSFER = "synchronous transfer"
    """A transfer that waits though nobody needs it to (6.1)."""
    REPEATED_TRANSFER = "repeated transfer"
    UNNECESSARY_SYNCHRONIZATION = "unnecessary synchronization"
    """An explicit one that nothing relies on (6.3)."""
    MISPLACED_SYNCHRONIZATION = "misplaced synchronization"
    """A needed one, long before its result is used (6.3)."""
    PARTIAL_DOWNLOAD = "download of data that nobody touches"
    MANAGED_MEMSET = "memset on managed memory"
    """A set that waits because the CPU can reach the memory (the dissertation's AMG)."""


MEMORY_OF = {"frees": "the buffer", "host memory": "the host memory", "destination": "the destination"}
"""What the places call the memory of each role."""


@dataclass(frozen=True, slots=True)
class MemoryLink:
    """Memory of a call. `role` is `frees`, `host memory` or `destination`; sites are None where not known."""

    role: str
    memory: str
    allocation: int | None
    release: int | None


@dataclass(frozen=True, slots=True)
class PartialDownload:
    """Downloads of one place of which the CPU touches a small part."""

    bytes: int
    """Of one of them, in the mean."""
    touched_bytes: int
    """Of all of them, at most."""
    first: int
    """What is touched of any of them lies from here, in bytes from its beginning,"""
    last: int
    """to here."""
    watched: int
    """Downloads of which this is known, out of all `of`."""
    of: int
    text: str
    """The same in a sentence."""
    saving_s: float
    """What downloading only that part saves at most."""


@dataclass(frozen=True, slots=True)
class ProblemSite:
    """A call site with a problem. Sites are numbers of the analysis; times in seconds."""

    site: int
    call: str
    kind: str
    """`synchronization`, `transfer`, `free` or `other`, as the model has it."""
    sets_memory: bool
    """Whether the call sets memory instead of copying."""
    count: int
    unnecessary: int
    """Occurrences whose synchronization nothing relied on, conditional ones included."""
    misplaced: int
    no_op: int
    repeat: int
    keep: tuple[int, ...]
    """Synchronizations that must stay."""
    memory: tuple[MemoryLink, ...]
    benefit_s: float
    """By the estimator that sorts."""
    download: PartialDownload | None = None
    framework: Framework | None = None
    """The Python package that the call is made through; None for a program that is not in Python."""


@dataclass(frozen=True, slots=True)
class PlaceToChange:
    """A place in the program that the remedy touches: the call itself, an allocation, a free."""

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


def identify_remedies(problems: list[ProblemSite]) -> list[Remedy]:
    """Return a remedy for each problem site, most expected benefit first; smaller downloads, whose benefit is only what
    they save at most, come behind."""
    remedies = [_remedy(problem) for problem in problems if _has_problem(problem)]
    return sorted(remedies, key=lambda remedy: (remedy.kind is RemedyKind.PARTIAL_DOWNLOAD, -remedy.benefit_s))


def _has_problem(problem: ProblemSite) -> bool:
    return _waits_or_repeats(problem) or problem.download is not None


def _waits_or_repeats(problem: ProblemSite) -> bool:
    return bool(problem.unnecessary or problem.misplaced or problem.no_op or problem.repeat)


def _remedy(problem: ProblemSite) -> Remedy:
    if problem.download is None:
        return _of_problem(problem)
    if not _waits_or_repeats(problem):
        return _partial_download(problem, problem.download)
    remedy = _of_problem(problem)
    steps = _smaller(problem.download)
    if problem.download.saving_s <= remedy.benefit_s:
        return replace(remedy, steps=(*remedy.steps, *steps))
    worth = problem.download.saving_s
    return replace(remedy, kind=RemedyKind.PARTIAL_DOWNLOAD, steps=(*steps, *remedy.steps), benefit_s=worth)


def _of_problem(problem: ProblemSite) -> Remedy:
    if problem.no_op or problem.repeat:
        return _repeated_transfer(problem)
    if problem.kind == "free":
        return _memory_management(problem)
    if problem.kind == "transfer":
        managed = any(link.memory == "managed" for link in problem.memory)
        return _managed_memset(problem) if problem.sets_memory and managed else _synchronous_transfer(problem)
    if problem.unnecessary:
        return _unnecessary(problem)
    return _misplaced(problem)


def _made(problem: ProblemSite, kind: RemedyKind, occurrences: int, steps: list[str], *roles: str) -> Remedy:
    """Put a remedy together; `roles` of the memory name the places that change with the call."""
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


def _memory_management(problem: ProblemSite) -> Remedy:
    steps = [
        "Allocate the buffer once, before the loop or in the object that outlives it, and free it after the last use.",
        "Or allocate with cudaMallocAsync and free with cudaFreeAsync on the stream that uses the buffer: they do not "
        "wait. Raise cudaMemPoolAttrReleaseThreshold of the device's pool, so that the memory stays in it.",
    ]
    if any(link.role == "frees" and link.memory == "pinned" for link in problem.memory):
        steps = ["Keep the pinned buffer for the life of the program: freeing it waits for all work of the context."]
    return _made(problem, RemedyKind.MEMORY_MANAGEMENT, problem.unnecessary, steps, "frees")


def _smaller(download: PartialDownload) -> list[str]:
    """The steps to a smaller download."""
    steps = [download.text]
    if download.touched_bytes == 0:
        steps.append(f"Leave the download out: that saves at most {download.saving_s:.4f} s.")
    elif download.last - download.first <= download.bytes // 2:
        steps.append(
            f"Download only that part: {download.last - download.first:,} bytes from byte {download.first:,} on."
        )
    else:
        steps.append(
            "What is touched lies apart: gather it in a kernel and download that, or copy it by rows with cudaMemcpy2D."
        )
    if download.watched < download.of:
        steps.append(
            f"Look at what the program does with the other {download.of - download.watched:,} downloads first: they "
            "were not watched to the end."
        )
    return steps


def _partial_download(problem: ProblemSite, download: PartialDownload) -> Remedy:
    steps = _smaller(download)
    made = _made(problem, RemedyKind.PARTIAL_DOWNLOAD, download.watched, steps, "host memory")
    return replace(made, of=download.of, benefit_s=download.saving_s)


def _repeated_transfer(problem: ProblemSite) -> Remedy:
    occurrences = problem.no_op + problem.repeat
    steps = ["Upload the data once, before the loop, and leave this call out: the bytes did not change."]
    if problem.repeat:
        steps.append(
            "Keep the buffer on the device: it was allocated or overwritten in between, so that its content was lost."
        )
    if problem.framework is None:
        steps.append("Make the host data const, so that the compiler refuses a write that would need a new upload.")
    return _made(problem, RemedyKind.REPEATED_TRANSFER, occurrences, steps, "destination")


def _synchronous_transfer(problem: ProblemSite) -> Remedy:
    asynchronous = "cudaMemsetAsync" if problem.sets_memory else "cudaMemcpyAsync"
    pageable = [link for link in problem.memory if link.role == "host memory" and link.memory == "pageable"]
    if pageable and "Async" in problem.call:
        steps = ["The call is asynchronous, but a copy from the device waits where it goes to pageable memory."]
    elif problem.framework is not None and not problem.sets_memory:
        steps = [problem.framework.asynchronous]
    else:
        steps = [f"Use {asynchronous} on the stream of the work that the data belong to."]
    if problem.framework is not None and problem.misplaced:
        steps.insert(
            0,
            "Keep the values on the GPU, and fetch them where they are looked at, or together behind the loop.",
        )
    if pageable and problem.framework is not None:
        steps.append(problem.framework.pinned)
    elif pageable:
        steps.append(
            "Pin the host memory, or the copy waits all the same: allocate it with cudaMallocHost instead of malloc or "
            "new, and free it with cudaFreeHost, or register it once with cudaHostRegister."
        )
        if any(link.allocation is None for link in pageable):
            steps.append(
                "Where it is allocated was not seen, at least not always: it lies on a stack or in a global variable, "
                "or is smaller than 1 KiB."
            )
    elif any(link.role == "host memory" for link in problem.memory):
        steps.append("The host memory is pinned already, as an asynchronous copy needs it.")
    steps += _kept(problem)
    occurrences = problem.unnecessary or problem.misplaced
    return _made(problem, RemedyKind.SYNCHRONOUS_TRANSFER, occurrences, steps, "host memory")


def _managed_memset(problem: ProblemSite) -> Remedy:
    steps = [
        "Where the CPU touches the memory next, set it with memset: cudaMemset waits on memory that the CPU can reach.",
        "Where the GPU touches it next, use cudaMemsetAsync on the stream of that work.",
    ]
    return _made(problem, RemedyKind.MANAGED_MEMSET, problem.unnecessary, steps, "destination")


def _kept(problem: ProblemSite) -> list[str]:
    """What must wait after the change, for what the conditional verdicts rely on."""
    steps = []
    if any(site != problem.site for site in problem.keep):
        steps.append("Keep the synchronization that is named below: a first use of the data relies on it.")
    needed = problem.count - problem.unnecessary
    if needed and problem.unnecessary:
        steps.append(
            f"Before the other first uses, wait with cudaStreamSynchronize: {needed:,} of {problem.count:,} calls are "
            "needed for them."
        )
    return steps


def _unnecessary(problem: ProblemSite) -> Remedy:
    steps = [f"Remove the {problem.call}: nothing relied on it in any run."]
    if problem.keep:
        steps = [f"Remove the {problem.call}, and keep the synchronization that is named below."]
    steps.append(
        "If it is there to order work on several streams, use cudaEventRecord and cudaStreamWaitEvent instead."
    )
    return _made(problem, RemedyKind.UNNECESSARY_SYNCHRONIZATION, problem.unnecessary, steps)


def _misplaced(problem: ProblemSite) -> Remedy:
    steps = [
        "Move the synchronization to just before the first use of the result, behind the CPU work and the launches "
        "between them; with other work in the stream, wait for an event that is recorded where it stands now."
    ]
    return _made(problem, RemedyKind.MISPLACED_SYNCHRONIZATION, problem.misplaced, steps, "host memory")
