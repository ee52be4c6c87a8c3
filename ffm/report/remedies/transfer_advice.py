"""What to change about transfers: those that wait, those that repeat others, and downloads that nobody touches."""

from __future__ import annotations

import re
from dataclasses import replace

from ffm.report.frameworks import Framework
from ffm.report.remedies.remedy import MemoryLink, PartialDownload, ProblemSite, Remedy, RemedyKind, remedy_for

UNPROVED_UPLOAD = "Not proved: that the host data stays the same with other input."
UNPROVED_DOWNLOAD = "Not proved: that no kernel changes the data in between with other input."

FITS_ARGUMENTS = 4096
"""The most bytes of arguments that a kernel can get on any GPU (CUDA C++ Programming Guide, "__global__")."""

_VARIANT = re.compile(r"(_v\d+|_pt[ds]s|_ptsz)+$")
_NOT_ASYNCHRONOUS = (
    "cudaMemcpyArrayToArray",
    "cudaMemcpy2DArrayToArray",
    "cuMemcpy2DUnaligned",
    "cuMemcpyAtoA",
    "cuMemcpyAtoD",
    "cuMemcpyDtoA",
)
"""Copies that no asynchronous function makes from the same arguments and a stream."""


def asynchronous_form(call: str, sets_memory: bool) -> str:
    """Return the function that does what `call` does, on a stream. That of a library has none of its own: for it, the
    general one is named.
    """
    name = _VARIANT.sub("", call)
    if re.match(r"cu(da)?Mem(cpy|set)", name) and name not in _NOT_ASYNCHRONOUS:
        return name if name.endswith("Async") else f"{name}Async"
    return "cudaMemsetAsync" if sets_memory else "cudaMemcpyAsync"


def synchronous_transfer(problem: ProblemSite) -> Remedy:
    """Return the remedy for a transfer that waits although nothing needs that, or waits too early."""
    asynchronous = asynchronous_form(problem.call, problem.sets_memory)
    pageable = [link for link in problem.memory if link.role == "host memory" and link.memory == "pageable"]
    if pageable and "Async" in problem.call:
        steps = ["The call is asynchronous, but a copy from the device to pageable memory waits."]
    elif problem.framework is not None and not problem.sets_memory:
        steps = [problem.framework.asynchronous]
    else:
        steps = [f"Use {asynchronous} {_stream(problem)}."]
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
    elif any(link.role == "host memory" and link.memory != "managed" for link in problem.memory):
        steps.append("The host memory is already pinned, as an asynchronous copy requires.")
    if pageable and not problem.downloads:
        steps.append(
            "The copy then reads that memory while the program goes on: write or free it only after waiting for "
            "an event recorded after the copy, or use several buffers in turn."
        )
    steps += _kept(problem)
    occurrences = problem.unnecessary or problem.misplaced
    return remedy_for(problem, RemedyKind.SYNCHRONOUS_TRANSFER, occurrences, steps, "host memory")


def _stream(problem: ProblemSite) -> str:
    """Return on which stream the copy is made. What a wait of another call covers must stay where that waits."""
    if any(site != problem.site for site in problem.keep):
        return "on the stream that the call uses now: the synchronization named below waits for it"
    return f"on the stream of the work that {'writes' if problem.downloads else 'uses'} the data"


def _unobserved(pageable: list[MemoryLink]) -> list[str]:
    """Return what to say about memory whose allocation is not among the places to change."""
    unknown = sum(link.occurrences for link in pageable if link.allocation is None)
    if not unknown:
        return []
    where = "it is on a stack, in a global variable, or smaller than 1 KiB."
    if all(link.allocation is None for link in pageable):
        return [f"Its allocation was not observed: {where}"]
    total = sum(link.occurrences for link in pageable)
    return [
        f"In {unknown:,} of {total:,} transfers, the pageable memory comes from none of the allocations below: {where}"
    ]


def _kept(problem: ProblemSite) -> list[str]:
    """Return what must wait after the change, because the conditional verdicts rely on it. Of a download that nobody
    touched, that is what frees or overwrites its memory.
    """
    steps = []
    untouched = problem.download is not None and problem.download.touched_bytes == 0
    if any(site != problem.site for site in problem.keep):
        relies = "what frees or overwrites the memory" if untouched else "a first use of the data"
        steps.append(
            "Keep the synchronization named below, even if it is part of the same line, or wait elsewhere for the same "
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


def managed_memset(problem: ProblemSite) -> Remedy:
    """Return the remedy for a set that waits because the CPU can access the memory."""
    steps = [
        "Where the CPU touches the memory next, set it with memset: cudaMemset waits on memory that the CPU can "
        "access.",
        "Where the GPU touches it next, use cudaMemsetAsync on the stream of that work.",
    ]
    return remedy_for(problem, RemedyKind.MANAGED_MEMSET, problem.unnecessary, steps, "destination")


def repeated_transfer(problem: ProblemSite) -> Remedy:
    """Return the remedy for transfers of bytes that went to the same place before."""
    small = problem.framework is None and 0 < problem.bytes <= FITS_ARGUMENTS
    always = not problem.changed and not problem.elsewhere
    if problem.changed or (problem.elsewhere and problem.downloads):
        steps = _only_when_changed(problem)
    elif problem.elsewhere:
        steps = _sent_before(problem)
    elif problem.downloads:
        steps = [
            "Download the data once and keep the host's copy: each call brought the same bytes.",
            UNPROVED_DOWNLOAD,
        ]
    elif problem.repeat and small:
        steps = [
            "Set so few bytes on the device, without an upload: with cudaMemsetAsync if all are equal, as those of a "
            "counter that begins at 0 are, otherwise in a kernel that gets the values as arguments. Each call sent the "
            "same bytes, but its destination was written or reallocated in between: the call cannot just be left out.",
            UNPROVED_UPLOAD,
        ]
    elif problem.repeat:
        there = "copy from there instead (cudaMemcpyAsync, device to device)"
        steps = [
            f"Keep the data on the device in a buffer of its own, and "
            f"{there if problem.framework is None else 'fill the other one from there'}: each call sent the same "
            "bytes, but its destination was written or reallocated in between, so the call cannot just be left out.",
            *([] if problem.framework is None else [in_words_of(problem.framework, problem.framework.sent_once)]),
            "Where it was only reallocated, keep the buffer: then one upload before the loop is enough.",
            UNPROVED_UPLOAD,
        ]
    else:
        steps = [
            "Upload the data once, before the loop, and leave this call out: "
            + (
                "each sent the same bytes, but what the device held was not looked at."
                if not problem.no_op
                else f"the device already held the same bytes at each of the {problem.no_op:,} calls where ffm looked, "
                f"of {problem.no_op + problem.unseen:,}."
                if problem.unseen
                else "the device already held the same bytes at each call."
            ),
            *([] if problem.framework is None else [in_words_of(problem.framework, problem.framework.sent_once)]),
            f"{UNPROVED_UPLOAD} Nor that no kernel then writes the buffer: if one may, keep the data in a second "
            "buffer, and copy from there on the device.",
        ]
    if problem.from_elsewhere:
        steps.insert(0, _first_compare(problem))
    elif problem.framework is None and always and not problem.downloads and not (small and problem.repeat):
        steps.append(
            "A kernel can also get so few bytes as arguments, without an upload."
            if small
            else "Make the host data const, so that the compiler refuses a write that would need a new upload."
        )
    if problem.framework is not None and problem.framework.name:
        staged = "" if problem.downloads else ", such as copying the array to pinned memory first,"
        steps.append(
            f"The saving is at least what is shown: it counts only the driver's calls. What {problem.framework.name} "
            f"itself does for a call that is left out{staged} is saved, too."
        )
    return remedy_for(problem, RemedyKind.REPEATED_TRANSFER, problem.repeated, steps, "destination")


def _first_compare(problem: ProblemSite) -> str:
    """Return what to look at first where equal bytes come from different places."""
    return (
        f"First check whether these are the same data: in {problem.from_elsewhere:,} of {problem.repeated:,} "
        "calls, they lie elsewhere in host memory than those sent there before, and may have been equal only in "
        "this run, as zeros are. If they are others, keep the call."
    )


def in_words_of(framework: Framework, step: str) -> str:
    """Return a step, with the name of the package in whose words it is."""
    return f"In {framework.name}: {step}" if framework.name else step


def _sent_before(problem: ProblemSite) -> list[str]:
    """Return the steps for uploads that sent nothing new, but not always to the same place."""
    before = problem.repeated + problem.elsewhere
    use = "use it there, or copy from there"
    if problem.framework is None:
        use += " (cudaMemcpyAsync, device to device)"
    return [
        f"Keep on the device what is uploaded, and {use}: in {before:,} of {problem.count:,} calls, the same bytes had "
        f"been sent before, in {problem.elsewhere:,} of them to another place.",
        *([] if problem.framework is None else [in_words_of(problem.framework, problem.framework.sent_once)]),
        UNPROVED_UPLOAD,
    ]


def _only_when_changed(problem: ProblemSite) -> list[str]:
    """Return the steps for transfers some of which were needed."""
    occurrences = problem.repeated
    call = (
        "brought bytes that the host already held"
        if problem.downloads
        else "sent bytes that the device was sent before"
    )
    but = "but, besides the first," if occurrences + problem.changed + problem.elsewhere < problem.count else "but"
    place = "from" if problem.downloads else "to"
    others = [f"{problem.changed:,} transferred others"] if problem.changed else []
    if problem.elsewhere:
        others.append(f"{problem.elsewhere:,} transferred the same {place} another place")
    steps = [
        f"Keep this call, and skip it only while the data is unchanged: {occurrences:,} of {problem.count:,} calls "
        f"{call}, {but} {' and '.join(others)}."
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


def steps_to_smaller(download: PartialDownload) -> list[str]:
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


def partial_download(problem: ProblemSite, download: PartialDownload) -> Remedy:
    """Return the remedy for downloads that are fine, except that they bring too much."""
    steps = steps_to_smaller(download)
    made = remedy_for(problem, RemedyKind.PARTIAL_DOWNLOAD, download.watched, steps, "host memory")
    return replace(made, of=download.of, benefit_s=download.saving_s)
