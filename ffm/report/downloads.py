"""Say in words how much of a download the program uses, and where the page watch could not determine it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ffm.report.commands import command, stdin_of
from ffm.report.numbers import count, plural, size
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.site import DownloadUse
from ffm.results.vocabulary import Because

MOSTLY_UNTOUCHED = 0.5
"""Smaller downloads are suggested where at most this share of all watched downloads was touched, unless the downloads
are so small that they last as long as their call (`ffm.model.copies.WORTH_TIMING_BYTES`). Those of which no byte is
touched can be left out at any size.
"""


@dataclass(frozen=True, slots=True)
class Download:
    """How much of what a site downloads the CPU touches, from `ffm.results.documents.site.DownloadUse`."""

    occurrences: int
    of: int
    watch: str
    bytes: int
    """Total size of all downloads that were watched."""
    touched_bytes: int
    """Upper limit of the bytes touched in them."""
    first: int
    """Offset of the first byte that is touched in any of them,"""
    last: int
    """and of the end of the last."""
    untouched: int
    """Watched downloads of which nothing was touched."""
    partial: bool
    """Whether a smaller download would suffice."""
    saving_s: float
    """Upper limit of what that saves."""
    text: str


def download(use: DownloadUse | None) -> Download | None:
    """Describe the use in words; None if nothing is downloaded or nothing was watched."""
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
        untouched=use.untouched,
        partial=is_partial(use),
        saving_s=use.saving_s,
        text=_text(use),
    )


def is_partial(use: DownloadUse | None) -> bool:
    """Return whether so little of a site's downloads is touched that smaller ones, or none, would suffice."""
    if use is None or use.occurrences == 0:
        return False
    if use.touched_bytes == 0 and use.occurrences == use.of:
        return True
    from ffm.model.copies import WORTH_TIMING_BYTES  # not above: few views need the model, which takes long to import

    return use.bytes >= WORTH_TIMING_BYTES * use.occurrences and use.touched_bytes <= MOSTLY_UNTOUCHED * use.bytes


def _text(use: DownloadUse) -> str:
    if use.occurrences == 0:
        return (
            "It is unknown how much of the downloaded data the CPU touches: no download could be watched from its wait "
            "until it was overwritten or freed (downloads in MPI ranks are never watched)."
        )
    followed = f"{count(use.occurrences)} of {plural(use.of, 'download')} watched to the end"
    unit = "byte" if use.watch == "trace" else "page"
    touched = "at most " + size(use.touched_bytes) if use.watch == "pages" else size(use.touched_bytes)
    if use.touched_bytes >= use.bytes:
        return f"The CPU touched every {unit} of the downloads ({followed})."
    if use.touched_bytes == 0:
        return (
            f"Of {size(use.bytes)} downloaded, the CPU touched nothing before the memory was overwritten or freed "
            f"({followed})."
        )
    each = "" if use.occurrences == 1 else "in each "
    return (
        f"Of {size(use.bytes)} downloaded, the CPU touched {touched}, {each}between byte {count(use.first)} and byte "
        f"{count(use.last)} ({followed})."
    )


def unwatched(analysis: Analysis, index: int) -> bool:
    """Return whether the page watch could not determine something about a site that the trace watch may."""
    site = analysis.sites[index]
    if analysis.watch != "pages":
        return False
    hidden = any(verdict.because is Because.NOT_WATCHED for verdict in site.synchronization)
    return hidden or (site.download is not None and site.download.occurrences == 0)


def trace_hint(analysis: Analysis, results: str = "") -> str:
    """Return what to run where the page watch could not tell; `results` as for `ffm.report.commands.command`."""
    stdin = stdin_of(analysis.run)
    program = shlex.join([*(["--stdin", stdin] if stdin else []), *analysis.command])
    again = "sync-use and analysis after it" + (f", with {results} too" if results else "")
    return (
        f"`{command('stage memory --watch trace', results)} {program}` follows every load and store instead of "
        f"protecting pages. It finds more unless the memory is on a stack or is mapped twice. Then run {again}."
    )


def watch_notes(analysis: Analysis, results: str = "") -> list[str]:
    """Return a note if synchronizations count as needed only because the page watch could not follow their data."""
    sites = [
        site
        for index, site in enumerate(analysis.sites)
        if unwatched(analysis, index) and any(v.because is Because.NOT_WATCHED for v in site.synchronization)
    ]
    if not sites:
        return []
    waiting = f"{plural(len(sites), 'call site')} wait{'s' if len(sites) == 1 else ''}"
    return [f"What {waiting} for could not be watched by page and counts as used. {trace_hint(analysis, results)}"]
