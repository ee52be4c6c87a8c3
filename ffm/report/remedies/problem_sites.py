"""Call sites with problems, as `ffm.report.remedies.advice` needs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import dropwhile

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Effect, Memory
from ffm.remedy.correctable import OTHER_FREES, REPEATED, SETS
from ffm.report.downloads import download
from ffm.report.findings import site_saving
from ffm.report.frameworks import framework_of_site, in_copy, package_call
from ffm.report.numbers import Estimator
from ffm.report.remedies.library_calls import library_call
from ffm.report.remedies.remedy import MemoryLink, PartialDownload, ProblemSite
from ffm.report.remedies.thrust_calls import thrust_call
from ffm.results.call_sites import ENDS_PYTHON, own_frame
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site, Verdict
from ffm.results.documents.stacks import Frame
from ffm.results.vocabulary import FROM_ELSEWHERE, Because

LOADS_CODE = frozenset(function.name for function in load_catalogue().with_effect(Effect.LOAD_CODE))

EXITS = ENDS_PYTHON | {"__cxa_finalize", "__run_exit_handlers"}
"""Functions of the C library and of Python that call what libraries do at the end of the program."""


def problem_sites(analysis: Analysis, estimator: Estimator) -> list[ProblemSite]:
    """Describe the sites with problems as the remedies need them."""
    found = []
    uploading = _uploading_calls(analysis)
    needed = _lines_with_needed_downloads(analysis)
    for index, site in enumerate(analysis.sites):
        partial = _partial_download(site)
        if not site.problem_count and partial is None:
            continue
        verdicts = (*site.synchronization, *site.transfer) if site.problem_count else ()
        occurrences = {verdict.kind: 0 for verdict in verdicts}
        for verdict in verdicts:
            occurrences[verdict.kind] += verdict.occurrences
        unnecessary = occurrences.get("unnecessary", 0) + occurrences.get("conditionally unnecessary", 0)
        mostly = unnecessary * 2 > site.count
        unseen = _because(verdicts, Because.REPEAT_UNSEEN)
        changed, elsewhere = _changed_and_elsewhere(index, site)
        memory = tuple(
            MemoryLink(link.role, link.memory, link.allocation, link.release, link.occurrences)
            for link in analysis.allocations
            if link.site == index
        )
        found.append(
            ProblemSite(
                site=index,
                call=site.call,
                kind=site.kind,
                loads_code=site.function in LOADS_CODE,
                sets_memory=site.function in SETS,
                count=site.count,
                unnecessary=unnecessary if mostly else 0,
                misplaced=0 if mostly else site.problem_count,
                no_op=occurrences.get("no-op", 0),
                repeat=occurrences.get("repeat", 0) - unseen,
                unseen=unseen,
                from_elsewhere=_because(verdicts, *FROM_ELSEWHERE),
                unrecorded=_because(verdicts, Because.EVENT_NOT_RECORDED),
                changed=changed,
                elsewhere=elsewhere,
                keep=tuple(sorted({verdict.keep for verdict in site.synchronization if verdict.keep is not None})),
                memory=memory,
                from_pool=site.function not in OTHER_FREES and all(link.memory != Memory.MANAGED for link in memory),
                benefit_s=site_saving(analysis, index).seconds(estimator),
                downloads=site.download is not None,
                bytes=site.bytes // max(site.count, 1),
                download=partial,
                framework=framework_of_site(analysis, site),
                in_copy=in_copy(analysis, site),
                package_call=package_call(analysis, site),
                own_thread=_on_its_own_thread(analysis, site),
                library=library_call(analysis, site),
                thrust=thrust_call(analysis, site),
                at_exit=_at_exit(analysis, site),
                copy_needed=(site.file, site.line) in needed,
                in_upload=_callers(analysis, site) in uploading,
                needed_for=_needed_for(site),
            )
        )
    return found


def _on_its_own_thread(analysis: Analysis, site: Site) -> bool:
    """Return whether a Python package makes the call on a thread that runs no Python."""
    frames = analysis.stacks[site.stack].frames
    if any(frame.python for frame in frames) or _on_main_thread(frames):
        return False
    return framework_of_site(analysis, site) is not None


def _on_main_thread(frames: Sequence[Frame]) -> bool:
    """Return whether a stack is known to be that of the thread that starts the program."""
    return bool(frames) and ("libc_start" in frames[-1].function or frames[-1].function == "_start")


def _because(verdicts: tuple[Verdict, ...], *reasons: Because) -> int:
    """Return how many occurrences have their verdict for one of these reasons."""
    return sum(verdict.occurrences for verdict in verdicts if verdict.because in reasons)


def _at_exit(analysis: Analysis, site: Site) -> bool:
    """Return whether a library makes the call when the program ends. Destructors of a thread's variables also run when
    that thread alone does. A script's main thread is below its module until Python calls what `atexit` was given.
    """
    frames = analysis.stacks[site.stack].frames
    if site.caller == "__call_tls_dtors":
        return any(frame.function in EXITS for frame in frames)
    python = [frame for frame in frames if frame.python]
    if not python or site.caller in EXITS:
        return site.caller in EXITS
    return _on_main_thread(frames) and python[-1].function != "<module>" and own_frame(frames, analysis.modules) is None


def _needed_for(site: Site) -> tuple[tuple[Because, int], ...]:
    """Return why its synchronizations that are needed are, and how many, most first."""
    counts = Counter[Because]()
    for verdict in site.synchronization:
        if verdict.kind in ("required", "misplaced"):
            counts[verdict.because] += verdict.occurrences
    return tuple(counts.most_common())


def _partial_download(site: Site) -> PartialDownload | None:
    """Return what a site downloads in vain; None if that is little, or unknown."""
    use = download(site.download)
    if use is None or not use.partial:
        return None
    return PartialDownload(
        bytes=use.bytes // use.occurrences,
        touched_bytes=use.touched_bytes,
        first=use.first,
        last=use.last,
        watched=use.occurrences,
        of=use.of,
        untouched=use.untouched,
        text=use.text,
        saving_s=use.saving_s,
    )


def _uploading_calls(analysis: Analysis) -> set[tuple[Frame, ...]]:
    """Return the callers of the functions that upload."""
    uploads = (site for site in analysis.sites if site.kind == "transfer" and "HtoD" in site.function)
    return {_callers(analysis, site) for site in uploads}


def _lines_with_needed_downloads(analysis: Analysis) -> set[tuple[str, int]]:
    """Return the lines with a download that waits by itself, as one to pageable memory does, where that is needed."""
    return {
        (site.file, site.line)
        for site in analysis.sites
        if site.kind == "transfer" and site.download is not None and _needed_for(site)
    }


def _callers(analysis: Analysis, site: Site) -> tuple[Frame, ...]:
    """Return what is on a site's stack outside of the function that calls the runtime."""
    frames = analysis.stacks[site.stack].frames
    outside = list(dropwhile(lambda frame: frame.module == frames[0].module, frames))
    return tuple(outside[1:])


def _changed_and_elsewhere(index: int, site: Site) -> tuple[int, int]:
    """Return how many transfers brought bytes that were not transferred before, and how many the same to another place,
    without the first of those that are repeated, which may be here; nothing if all bytes are the same.
    """
    again = [verdict for verdict in site.transfer if verdict.kind in REPEATED]
    new = site.count - sum(verdict.occurrences for verdict in again)
    if new == 1 and all(verdict.first == index for verdict in again):
        return 0, 0
    copies = sum(verdict.occurrences for verdict in again if verdict.kind == "copy")
    first = any(verdict.first in (index, None) for verdict in again if verdict.kind != "copy")
    return max(new - first, 0), max(copies - (first and not new), 0)
