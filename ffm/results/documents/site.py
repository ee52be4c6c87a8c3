"""A call site, as documents store it: its totals over the run, its verdicts, and what fixing it saves."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ffm.results.documents.benefit import Benefit
from ffm.results.documents.fields import Count, Number, Record, Seconds, one_of
from ffm.results.vocabulary import Because

SiteKind = Annotated[str, one_of("other", "synchronization", "transfer", "free", "allocation", "launch", "private")]
VerdictKind = Annotated[
    str,
    one_of(
        "required",
        "misplaced",
        "unnecessary",
        "conditionally unnecessary",
        "not judged",
        "needed",
        "no-op",
        "repeat",
        "copy",
        "partial",
    ),
]
Watch = Annotated[str, one_of("pages", "trace", "")]


class Verdict(Record, frozen=True, kw_only=True):
    """What stages 3 and 4 say about the synchronizations or transfers of one site.

    `kind` is `required`, `misplaced`, `unnecessary` or `conditionally unnecessary` for synchronizations, and `needed`,
    `no-op`, `repeat`, `copy` or `partial` for transfers; `not judged` for both, at the edges of the portion of the run
    that was measured. It applies to `occurrences` of all.
    """

    kind: VerdictKind
    because: Because
    occurrences: Count
    keep: Number | None = None
    """If conditionally unnecessary, the site of the synchronization that must stay."""
    first: Number | None = None
    """For repeated transfers, the site of the transfer that is repeated."""

    @property
    def conditional(self) -> bool:
        """Whether other synchronizations must stay for it to hold."""
        return self.kind == "conditionally unnecessary"


class DownloadUse(Record, frozen=True, kw_only=True):
    """How much of what a site downloads the CPU touches before it is overwritten or freed.

    Known for `occurrences` downloads, out of all `of`: downloads are followed only if that is cheap. With the page
    watch, a touch counts at least its whole page. What the GPU reads there counts as touched.
    """

    occurrences: Count
    of: Count
    watch: Watch
    """How accesses were watched: `pages` or `trace`."""
    bytes: Count = 0
    """Total of all followed downloads."""
    touched_bytes: Count = 0
    """Upper limit of the bytes touched in them."""
    first: Count = 0
    """Offset of the first byte touched in any of them, from the start of its download,"""
    last: Count = 0
    """and of the end of the last."""
    untouched: Count = 0
    """Followed downloads of which nothing was touched."""
    saving_s: Seconds = 0.0
    """Upper limit of what downloading only that part would save: the time to copy the rest, as far as the CPU waits for
    it or copies itself.
    """


class Site(Record, frozen=True, kw_only=True):
    """A distinct call stack that performed an operation, with its totals over the run."""

    call: str
    """The CUDA call as the programmer wrote it (`cudaFree`): the outermost runtime or driver entry of the stack."""
    function: str
    """The driver function (`cuMemFree_v2`), or `private`."""
    caller: str
    """Demangled function that makes the call."""
    file: str
    line: Number
    """0 if there is no debug information; the frame's module and offset then name the place."""
    stack: Number
    kind: SiteKind
    """A name of `ffm.model.timeline.Kind`, in lower case."""
    count: Count
    total_s: Seconds
    wait_s: Seconds
    gap_s: Seconds
    bytes: Count
    copy_ns: Count = 0
    """How long the GPU copies at least for one of its transfers; 0 for other calls, and if nothing shows it."""
    problem_count: Count
    """Occurrences with any problem."""
    problem_thread: Number | None = None
    """The thread of the timeline, from 0, that makes all of these; None if there are several, or none."""
    synchronization: list[Verdict]
    transfer: list[Verdict]
    benefit: Benefit
    download: DownloadUse | None = None
    """None if it downloads nothing, or stage 3 did not check."""
    before_pinning_s: Seconds | None = None
    """What `benefit` would expect if pinning memory cost nothing; None if no memory need be pinned."""
    buffer: str = ""
    """The program's name for the memory: what an allocation fills, what a free frees, the host memory of a transfer.
    Empty if it is unknown, or if the site has no problem.
    """
    kernels: list[str] = msgspec.field(default_factory=list)
    """The kernels that it launches, as the program writes them, most often launched first; empty if the driver did not
    tell.
    """

    @property
    def staged_s(self) -> float:
        """The seconds that are expected if the transfers go through pinned memory that exists already."""
        return self.benefit.expected_s if self.before_pinning_s is None else self.before_pinning_s
