"""How much of a download the program touches, in words; and where watching by pages could not tell."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ffm.model.necessity import REASONS, Reason
from ffm.report.numbers import count, plural, size
from ffm.stages.analysis_document import Analysis, DownloadUse

MOSTLY_UNTOUCHED = 0.5
"""A download is worth a smaller one where no more than this share of it was touched, in any that was followed."""

WORTH_MAKING_SMALLER = 64 * 1024
"""Bytes; smaller copies last as long as their call (`ffm.model.copies.WORTH_TIMING_BYTES`)."""


@dataclass(frozen=True, slots=True)
class Download:
    """How much of what a site downloads the CPU touches, as `ffm.stages.analysis_document.DownloadUse` says it."""

    occurrences: int
    of: int
    watch: str
    bytes: int
    """Of the largest download that was followed."""
    touched_bytes: int
    """At most, of the one of which most was touched; these lie within `first` to `last`."""
    first: int
    last: int
    partial: bool
    """Whether a smaller download would do."""
    saving_s: float
    """What that saves at most."""
    text: str


def download(use: DownloadUse | None) -> Download | None:
    """Put it in words; None where nothing is downloaded, or nobody looked."""
    if use is None:
        return None
    return Download(
        occurrences=use.occurrences,
        of=use.of,
        watch=use.watch,
        bytes=use.most_bytes,
        touched_bytes=use.most_touched_bytes,
        first=use.first,
        last=use.last,
        partial=is_partial(use),
        saving_s=use.saving_s,
        text=_text(use),
    )


def is_partial(use: DownloadUse | None) -> bool:
    """Whether so little of a site's downloads is touched that smaller ones would do."""
    return (
        use is not None
        and use.most_bytes >= WORTH_MAKING_SMALLER
        and use.most_touched_bytes <= MOSTLY_UNTOUCHED * use.most_bytes
    )


def _text(use: DownloadUse) -> str:
    if use.occurrences == 0:
        return (
            "How much of what it downloads the CPU touches is not known: no download could be watched from its wait "
            "until it was overwritten or given back (in ranks of an MPI program none is)."
        )
    followed = f"{count(use.occurrences)} of {plural(use.of, 'download')} watched to the end"
    unit = "byte" if use.watch == "trace" else "page"
    touched = "at most " + size(use.most_touched_bytes) if use.watch == "pages" else size(use.most_touched_bytes)
    if use.most_touched_bytes >= use.most_bytes:
        return f"The CPU touched every {unit} of a download ({followed})."
    if use.most_touched_bytes == 0:
        return (
            f"Of {size(use.most_bytes)} downloaded the CPU touched nothing before it was overwritten or given back "
            f"({followed})."
        )
    return (
        f"Of {size(use.most_bytes)} downloaded the CPU touched {touched}, between byte {count(use.first)} and byte "
        f"{count(use.last)} ({followed})."
    )


def unwatched(analysis: Analysis, index: int) -> bool:
    """Whether the watch by pages could not tell something of a site that the trace watch may."""
    site = analysis.sites[index]
    if analysis.watch != "pages":
        return False
    hidden = any(verdict.reason == REASONS[Reason.NOT_WATCHED] for verdict in site.synchronization)
    return hidden or (site.download is not None and site.download.occurrences == 0)


def trace_hint(analysis: Analysis) -> str:
    """What to run where the watch by pages could not tell."""
    command = shlex.join(["--", *analysis.command])
    return (
        f"`ffm stage memory --watch trace {command}` follows every load and store instead of protecting pages, and "
        "tells more unless the memory lies on a stack or is mapped twice; run sync-use and analysis after it."
    )


def watch_notes(analysis: Analysis) -> list[str]:
    """A note where synchronizations count as required only since what they protect could not be watched by page."""
    sites = [
        site
        for index, site in enumerate(analysis.sites)
        if unwatched(analysis, index) and any(v.reason == REASONS[Reason.NOT_WATCHED] for v in site.synchronization)
    ]
    if not sites:
        return []
    waiting = f"{plural(len(sites), 'call site')} wait{'s' if len(sites) == 1 else ''}"
    return [f"What {waiting} for could not be watched by page, and counts as used. {trace_hint(analysis)}"]
