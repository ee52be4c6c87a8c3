"""Call sites with problems, as `ffm.report.remedies.advice` needs them."""

from __future__ import annotations

from collections import Counter
from itertools import dropwhile

from ffm.remedy.correctable import SETS
from ffm.report.downloads import download
from ffm.report.frameworks import framework_of_site, in_copy
from ffm.report.numbers import Estimator
from ffm.report.places import site_saving
from ffm.report.remedies.library_calls import library_call
from ffm.report.remedies.remedy import MemoryLink, PartialDownload, ProblemSite
from ffm.report.remedies.thrust_calls import thrust_call
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import Site, Verdict
from ffm.results.documents.stacks import Frame
from ffm.results.vocabulary import FROM_ELSEWHERE, Because

EXITS = ("__cxa_finalize", "__run_exit_handlers")
"""The C library's functions that call what libraries registered for the end of the program."""


def problem_sites(analysis: Analysis, estimator: Estimator) -> list[ProblemSite]:
    """Describe the sites with problems as the remedies need them."""
    found = []
    uploading = _uploading_calls(analysis)
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
        found.append(
            ProblemSite(
                site=index,
                call=site.call,
                kind=site.kind,
                sets_memory=site.function in SETS,
                count=site.count,
                unnecessary=unnecessary if mostly else 0,
                misplaced=0 if mostly else site.problem_count,
                no_op=occurrences.get("no-op", 0),
                repeat=occurrences.get("repeat", 0) - unseen,
                unseen=unseen,
                from_elsewhere=_because(verdicts, *FROM_ELSEWHERE),
                unrecorded=_because(verdicts, Because.EVENT_NOT_RECORDED),
                changed=_changed(index, site),
                elsewhere=occurrences.get("copy", 0),
                keep=tuple(sorted({verdict.keep for verdict in site.synchronization if verdict.keep is not None})),
                memory=tuple(
                    MemoryLink(link.role, link.memory, link.allocation, link.release, link.occurrences)
                    for link in analysis.allocations
                    if link.site == index
                ),
                benefit_s=site_saving(analysis, index).seconds(estimator),
                downloads=site.download is not None,
                bytes=site.bytes // max(site.count, 1),
                download=partial,
                framework=framework_of_site(analysis, site),
                in_copy=in_copy(analysis, site),
                library=library_call(analysis, site),
                thrust=thrust_call(analysis, site),
                at_exit=site.caller in EXITS,
                in_upload=_callers(analysis, site) in uploading,
                needed_for=_needed_for(site),
            )
        )
    return found


def _because(verdicts: tuple[Verdict, ...], *reasons: Because) -> int:
    """Return how many occurrences have their verdict for one of these reasons."""
    return sum(verdict.occurrences for verdict in verdicts if verdict.because in reasons)


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


def _callers(analysis: Analysis, site: Site) -> tuple[Frame, ...]:
    """Return what is on a site's stack outside of the function that calls the runtime."""
    frames = analysis.stacks[site.stack].frames
    outside = list(dropwhile(lambda frame: frame.module == frames[0].module, frames))
    return tuple(outside[1:])


def _changed(index: int, site: Site) -> int:
    """Return how many transfers brought other bytes than those that are repeated, the first of which may be here.

    Bytes that were transferred elsewhere before are the same only if this site brought nothing else.
    """
    again = [verdict for verdict in site.transfer if verdict.kind in ("no-op", "repeat", "copy")]
    if site.count - sum(verdict.occurrences for verdict in again) == 1 and all(one.first == index for one in again):
        return 0
    repeated = [verdict for verdict in again if verdict.kind != "copy"]
    others = site.count - sum(verdict.occurrences for verdict in repeated)
    return max(others - any(verdict.first in (index, None) for verdict in repeated), 0)
