"""How much of a download the program touches, in words; and where watching by pages could not tell."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ffm.model.copies import WORTH_TIMING_BYTES
from ffm.model.necessity import REASONS, Reason
from ffm.report.commands import command
from ffm.report.numbers import count, plural, size
from ffm.stages.analysis_document import Analysis, DownloadUse

MOSTLY_UNTOUCHED = 0.5
"""Downloads are worth making smaller where no more than this share of all that were followed was touched, and where
they are not so small that they last as long as their call (`ffm.model.copies.WORTH_TIMING_BYTES`)."""


@dataclass(frozen=True, slots=True)
class Download:
    """How much of what a site downloads the CPU touches, as `ffm.stages.analysis_document.DownloadUse` says it."""

    occurrences: int
    of: int
    watch: str
    bytes: int
    """Of all downloads that were followed."""
    touched_bytes: int
    """Of these, at most."""
    first: int
    """What is touched of any of them lies from here, in bytes from its beginning,"""
    last: int
    """to here."""
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
        bytes=use.bytes,
        touched_bytes=use.touched_bytes,
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
        and use.occurrences > 0
        and use.bytes >= WORTH_TIMING_BYTES * use.occurrences
        and use.touched_bytes <= MOSTLY_UNTOUCHED * use.bytes
    )


def _text(use: DownloadUse) -> str:
    if use.occurrences == 0:
        return (
            "How much of what it downloads the CPU touches is not known: no download could be watched from its wait "
            "until it was overwritten or given back (in ranks of an MPI program none is)."
        )
    followed = f"{count(use.occurrences)} of {plural(use.of, 'download')} watched to the end"
    unit = "byte" if use.watch == "trace" else "page"
    touched = "at most " + size(use.touched_bytes) if use.watch == "pages" else size(use.touched_bytes)
    if use.touched_bytes >= use.bytes:
        return f"The CPU touched every {unit} of the downloads ({followed})."
    if use.touched_bytes == 0:
        return (
            f"Of {size(use.bytes)} downloaded the CPU touched nothing before it was overwritten or given back "
            f"({followed})."
        )
    each = "" if use.occurrences == 1 else "in each "
    return (
        f"Of {size(use.bytes)} downloaded the CPU touched {touched}, {each}between byte {count(use.first)} and byte "
        f"{count(use.last)} ({followed})."
    )


def unwatched(analysis: Analysis, index: int) -> bool:
    """Whether the watch by pages could not tell something of a site that the trace watch may."""
    site = analysis.sites[index]
    if analysis.watch != "pages":
        return False
    hidden = any(verdict.reason == REASONS[Reason.NOT_WATCHED] for verdict in site.synchronization)
    return hidden or (site.download is not None and site.download.occurrences == 0)


def trace_hint(analysis: Analysis, results: str = "") -> str:
    """What to run where the watch by pages could not tell; `results` as for `ffm.report.commands.command`."""
    program = shlex.join(["--", *analysis.command])
    again = "sync-use and analysis after it" + (f", with {results} too" if results else "")
    return (
        f"`{command('stage memory --watch trace', results)} {program}` follows every load and store instead of "
        f"protecting pages, and tells more unless the memory lies on a stack or is mapped twice; run {again}."
    )


def watch_notes(analysis: Analysis, results: str = "") -> list[str]:
    """A note where synchronizations count as required only since what they protect could not be watched by page."""
    sites = [
        site
        for index, site in enumerate(analysis.sites)
        if unwatched(analysis, index) and any(v.reason == REASONS[Reason.NOT_WATCHED] for v in site.synchronization)
    ]
    if not sites:
        return []
    waiting = f"{plural(len(sites), 'call site')} wait{'s' if len(sites) == 1 else ''}"
    return [f"What {waiting} for could not be watched by page, and counts as used. {trace_hint(analysis, results)}"]
