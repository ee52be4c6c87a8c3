"""What a developer should change to fix a problem, and every place that must change (dissertation, chapter 6).

Pure functions over what stage 5 found about a call site. The advice is in terms of CUDA 11.2 and newer, which, unlike
the dissertation's CUDA, has stream-ordered allocation (`cudaMallocAsync`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from ffm.report.python.frameworks import Framework


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
    """Transfers of other bytes than those that are repeated, or of the same to another place."""
    keep: tuple[int, ...]
    """Synchronizations that must stay; the site itself where a later call of it must."""
    memory: tuple[MemoryLink, ...]
    benefit_s: float
    """By the estimator used for sorting."""
    downloads: bool = False
    """Whether the call copies from the device."""
    unseen: int = 0
    """Transfers of bytes that went to the same place before, whose content was not looked at."""
    elsewhere: int = 0
    """Transfers of bytes that had been transferred to or from another place before."""
    download: PartialDownload | None = None
    framework: Framework | None = None
    """The Python package through which the call is made; None for a program that is not in Python."""
    in_copy: bool = False
    """Whether a copy of that package makes the call, which a program cannot remove by itself."""

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


def identify_remedies(problems: list[ProblemSite]) -> list[Remedy]:
    """Return a remedy for each problem site, largest expected benefit first. Smaller downloads come last because their
    benefit is only an upper limit.
    """
    remedies = [_remedy(problem) for problem in problems if _has_problem(problem)]
    return sorted(remedies, key=lambda remedy: (remedy.kind is RemedyKind.PARTIAL_DOWNLOAD, -remedy.benefit_s))


def _has_problem(problem: ProblemSite) -> bool:
    return _waits_or_repeats(problem) or problem.download is not None


def _waits_or_repeats(problem: ProblemSite) -> bool:
    return bool(problem.unnecessary or problem.misplaced or problem.repeated)


def _remedy(problem: ProblemSite) -> Remedy:
    if problem.download is None:
        return _of_problem(problem)
    if not _waits_or_repeats(problem):
        return _partial_download(problem, problem.download)
    remedy = _of_problem(problem)
    steps = _smaller(problem.download)
    if problem.download.saving_s <= remedy.benefit_s:
        return replace(remedy, steps=(*remedy.steps, *steps))
    if problem.download.touched_bytes == 0:
        steps.append("If it has to stay, do the following instead.")
    worth = problem.download.saving_s
    return replace(remedy, kind=RemedyKind.PARTIAL_DOWNLOAD, steps=(*steps, *remedy.steps), benefit_s=worth)


def _of_problem(problem: ProblemSite) -> Remedy:
    if problem.repeated:
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


def _memory_management(problem: ProblemSite) -> Remedy:
    once = (
        "Allocate the buffer once for each stream that uses it, before the loop or in the object that outlives it, and "
        "free it after the last use."
    )
    pool = (
        "Or allocate with cudaMallocAsync and free with cudaFreeAsync on the stream that uses the buffer: they do not "
        "wait. Raise cudaMemPoolAttrReleaseThreshold of the device's pool so that the pool keeps the memory."
    )
    steps = [once, pool] if problem.framework is None else [problem.framework.memory]
    if any(link.role == "frees" and link.memory == "pinned" for link in problem.memory):
        steps = ["Keep the pinned buffer for the life of the program: freeing it waits for all work of the context."]
    return _made(problem, RemedyKind.MEMORY_MANAGEMENT, problem.unnecessary, steps, "frees")


def _smaller(download: PartialDownload) -> list[str]:
    """Return the steps to a smaller download."""
    steps = [download.text]
    if download.touched_bytes == 0:
        steps.append(f"Remove the download: that saves at most {download.saving_s:.4f} s.")
    elif _is_whole(download):
        steps.append(
            f"Download only where the data is used: {download.untouched:,} of {download.watched:,} downloads were "
            "overwritten or freed untouched. The others are needed, nearly whole."
        )
    elif download.last - download.first <= download.bytes // 2:
        steps.append(
            f"Download only that part: {download.last - download.first:,} bytes from byte {download.first:,} on."
        )
    else:
        steps.append(
            "The touched bytes are scattered: gather them in a kernel and download the result, or copy rows with "
            "cudaMemcpy2D."
        )
    if download.watched < download.of:
        steps.append(
            f"First check how the program uses the other {download.of - download.watched:,} downloads: they were not "
            "watched to the end."
        )
    return steps


def _is_whole(download: PartialDownload) -> bool:
    """Return whether the downloads of which anything was touched were touched for the larger part."""
    used = download.watched - download.untouched
    return download.untouched > 0 and download.touched_bytes > used * download.bytes // 2


def _partial_download(problem: ProblemSite, download: PartialDownload) -> Remedy:
    steps = _smaller(download)
    made = _made(problem, RemedyKind.PARTIAL_DOWNLOAD, download.watched, steps, "host memory")
    return replace(made, of=download.of, benefit_s=download.saving_s)


def _repeated_transfer(problem: ProblemSite) -> Remedy:
    if problem.changed:
        steps = _only_when_changed(problem)
    elif problem.downloads:
        steps = [
            "Download the data once and keep the host's copy: each call brought the same bytes.",
            UNPROVED_DOWNLOAD,
        ]
    elif problem.repeat:
        there = "copy from there instead (cudaMemcpyAsync, device to device)"
        steps = [
            f"Keep the data on the device in a buffer of its own, and "
            f"{there if problem.framework is None else 'fill the other one from there'}: each call sent the same "
            "bytes, but its destination was written or reallocated in between, so the call cannot just be left out.",
            *([] if problem.framework is None else [_in_words_of(problem.framework)]),
            "Where it was only reallocated, keep the buffer: then one upload before the loop is enough.",
            UNPROVED_UPLOAD,
        ]
    else:
        steps = [
            "Upload the data once, before the loop, and leave this call out: "
            + (
                "each sent the same bytes, but what the device held was not looked at."
                if not problem.no_op
                else f"the device held the same bytes already at each of the {problem.no_op:,} calls at which it was "
                f"looked at, of {problem.no_op + problem.unseen:,}."
                if problem.unseen
                else "the device held the same bytes already at each call."
            ),
            *([] if problem.framework is None else [_in_words_of(problem.framework)]),
            f"{UNPROVED_UPLOAD} Nor that no kernel writes the buffer then: if one may, keep the data in a second "
            "buffer, and copy from there on the device.",
        ]
    if problem.framework is None and not problem.changed and not problem.downloads:
        steps.append("Make the host data const, so that the compiler refuses a write that would need a new upload.")
    if problem.framework is not None and problem.framework.name:
        steps.append(
            f"The saving is at least what is shown: it counts the driver's calls alone. What {problem.framework.name} "
            "does itself for a call that is left out, such as copying the array to pinned memory first, is saved, too."
        )
    return _made(problem, RemedyKind.REPEATED_TRANSFER, problem.repeated, steps, "destination")


def _in_words_of(framework: Framework) -> str:
    return f"In {framework.name}: {framework.sent_once}" if framework.name else framework.sent_once


UNPROVED_UPLOAD = "Not shown: that the host data stays the same with other input."
UNPROVED_DOWNLOAD = "Not shown: that no kernel changes the data in between with other input."


def _only_when_changed(problem: ProblemSite) -> list[str]:
    """Return the steps for transfers of which some were needed."""
    occurrences = problem.repeated
    call = (
        "brought bytes that the host already held"
        if problem.downloads
        else "sent bytes that the device was sent before"
    )
    but = "but, besides the first," if occurrences + problem.changed < problem.count else "but"
    place = "from" if problem.downloads else "to"
    elsewhere = f", or the same {place} another place" if problem.elsewhere else ""
    steps = [
        f"Keep this call, and skip it only while the data is unchanged: {occurrences:,} of {problem.count:,} calls "
        f"{call}, {but} {problem.changed:,} transferred others{elsewhere}."
    ]
    if problem.downloads:
        steps.append("Download again only after work that may have written the data.")
    else:
        steps.append("Note where the host writes the data, and upload it again only then.")
        if problem.changed > 1:
            steps.append("If the same bytes come back after others, keep each of them in a buffer on the device.")
    if problem.repeat and not problem.downloads:
        steps.append(
            "Its destination was written or reallocated in between: keep the unchanged data in a second buffer on the "
            "device, and copy from there."
        )
    return steps


def _synchronous_transfer(problem: ProblemSite) -> Remedy:
    asynchronous = "cudaMemsetAsync" if problem.sets_memory else "cudaMemcpyAsync"
    pageable = [link for link in problem.memory if link.role == "host memory" and link.memory == "pageable"]
    if pageable and "Async" in problem.call:
        steps = ["The call is asynchronous, but a copy from the device to pageable memory waits."]
    elif problem.framework is not None and not problem.sets_memory:
        steps = [problem.framework.asynchronous]
    else:
        steps = [f"Use {asynchronous} on the stream of the work that uses the data."]
    if problem.framework is not None and (problem.misplaced or (problem.downloads and problem.keep)):
        steps.insert(
            0,
            "Keep the values on the GPU, and fetch them where they are used, or all together after the loop.",
        )
    if pageable and problem.framework is not None:
        steps.append(problem.framework.pinned)
    elif pageable:
        steps.append(
            "Pin the host memory, or the copy waits anyway: allocate it with cudaMallocHost instead of malloc or "
            "new, and free it with cudaFreeHost, or register it once with cudaHostRegister."
        )
        steps += _unobserved(pageable)
        if not problem.downloads:
            steps.append(
                "The copy then reads that memory while the program goes on: write or free it only after waiting for "
                "an event recorded after the copy, or use several buffers in turn."
            )
    elif any(link.role == "host memory" and link.memory != "managed" for link in problem.memory):
        steps.append("The host memory is already pinned, as an asynchronous copy requires.")
    steps += _kept(problem)
    occurrences = problem.unnecessary or problem.misplaced
    return _made(problem, RemedyKind.SYNCHRONOUS_TRANSFER, occurrences, steps, "host memory")


def _unobserved(pageable: list[MemoryLink]) -> list[str]:
    """Return what is to be said of memory whose allocation is not among the places to change."""
    unknown = sum(link.occurrences for link in pageable if link.allocation is None)
    if not unknown:
        return []
    where = "it is on a stack, in a global variable, or smaller than 1 KiB."
    if all(link.allocation is None for link in pageable):
        return [f"Its allocation was not observed: {where}"]
    total = sum(link.occurrences for link in pageable)
    return [
        f"In {unknown:,} of {total:,} transfers, the pageable memory is from none of the allocations below: {where}"
    ]


def _managed_memset(problem: ProblemSite) -> Remedy:
    steps = [
        "Where the CPU touches the memory next, set it with memset: cudaMemset waits on memory that the CPU can "
        "access.",
        "Where the GPU touches it next, use cudaMemsetAsync on the stream of that work.",
    ]
    return _made(problem, RemedyKind.MANAGED_MEMSET, problem.unnecessary, steps, "destination")


def _kept(problem: ProblemSite) -> list[str]:
    """Return what must wait after the change, because the conditional verdicts rely on it. Of a download that nobody
    touched, that is what frees or overwrites its memory.
    """
    steps = []
    untouched = problem.download is not None and problem.download.touched_bytes == 0
    if any(site != problem.site for site in problem.keep):
        relies = "what frees or overwrites the memory" if untouched else "a first use of the data"
        steps.append(
            "Keep the synchronization named below, also if it is part of the same line, or wait elsewhere for the same "
            f"work: {relies} relies on it."
        )
    needed = problem.count - problem.unnecessary
    if needed and problem.unnecessary:
        before = "the memory is freed or overwritten otherwise" if untouched else "the other first uses"
        steps.append(
            f"Before {before}, wait with cudaStreamSynchronize: {needed:,} of {problem.count:,} calls are needed for "
            f"{'that' if untouched else 'them'}."
        )
    return steps


def _as_long_as(problem: ProblemSite) -> str:
    """Return the condition under which nothing relies on waits, to follow that; empty for none."""
    if set(problem.keep) == {problem.site}:
        return ", as long as the last of them stays"
    return ", as long as the synchronization named below stays" if problem.keep else ""


def _unnecessary(problem: ProblemSite) -> Remedy:
    kept = _as_long_as(problem)
    if problem.in_copy and problem.framework is not None:
        steps = [f"The copy need not wait: nothing relied on that in any run{kept}.", problem.framework.asynchronous]
        return _made(problem, RemedyKind.UNNECESSARY_SYNCHRONIZATION, problem.unnecessary, steps)
    if problem.kind == "other":
        steps = [
            f"Nothing relied in any run on the wait in {problem.call}{kept}: make the call where the GPU has no work, "
            "or leave it out."
        ]
        return _made(problem, RemedyKind.UNNECESSARY_SYNCHRONIZATION, problem.unnecessary, steps)
    what, order = f"Remove the {problem.call}", "cudaEventRecord and cudaStreamWaitEvent"
    if problem.framework is not None:
        what, order = f"Leave out {problem.framework.waits}", problem.framework.order
    steps = [f"{what}: nothing relied on it in any run."]
    if set(problem.keep) == {problem.site}:
        steps = [f"{what}, but wait once where the results are used: nothing relied on the earlier calls."]
    elif problem.keep:
        steps = [f"{what}, and keep the synchronization named below."]
    steps.append(f"If its purpose is to order work on several streams, use {order} instead.")
    return _made(problem, RemedyKind.UNNECESSARY_SYNCHRONIZATION, problem.unnecessary, steps)


def _misplaced(problem: ProblemSite) -> Remedy:
    steps = [
        "Move the synchronization to just before the first use of the result, after the CPU work and the launches "
        "in between. If the stream has other work, wait instead for an event recorded where the call is now."
    ]
    return _made(problem, RemedyKind.MISPLACED_SYNCHRONIZATION, problem.misplaced, steps, "host memory")
