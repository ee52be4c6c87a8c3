"""What stage 5 found, as a document: the call sites with their verdicts, groups of them, and what fixing each saves.

As in `ffm.stages.documents`, times are seconds where a name ends in `_s`.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ffm.stages.documents import NOT_MEASURED, Document, Record, WaitLatency


class Benefit(Record, frozen=True, kw_only=True):
    """Seconds of the run that a fix would save, by each estimator (docs/architecture.md#the-model), and an interval.

    Of a run of several processes they are the run's, which ends when all have ended, not a sum over processes.
    """

    carry_s: float
    bound_s: float
    replay_s: float | None = None
    """None where nothing is known of the GPU (imported results), or where it was not worth a replay."""
    low_s: float | None = None
    high_s: float | None = None
    """What is saved at least and at most, for all that is not known; None in documents that give no interval."""
    rests_on: str = ""
    """What the interval rests on, in words."""

    @property
    def expected_s(self) -> float:
        """The seconds that everything shows and is ordered by, unless told otherwise: by replay, or else by carry."""
        return self.carry_s if self.replay_s is None else self.replay_s


class Verdict(Record, frozen=True, kw_only=True):
    """What stages 3 and 4 say of the synchronizations or transfers of one site.

    `kind` is `required`, `misplaced`, `unnecessary`, `conditionally unnecessary` for synchronizations and
    `needed`, `no-op`, `repeat`, `copy`, `partial` for transfers; `occurrences` rest on it, out of all.
    """

    kind: str
    reason: str
    occurrences: int
    keep: int | None = None
    """Conditionally unnecessary: the site of the synchronization that must stay."""
    first: int | None = None
    """Repeated transfers: the site of the transfer that is repeated."""


class DownloadUse(Record, frozen=True, kw_only=True):
    """How much of what a site downloads the CPU touches before it is overwritten or given back.

    Known of `occurrences` downloads, out of all `of`: a download is followed where that is not dear. Under the watch by
    pages, a touch counts as one of its page at least. What the GPU reads there counts as touched.
    """

    occurrences: int
    of: int
    watch: str
    """How accesses were watched: `pages` or `trace`."""
    bytes: int = 0
    """Of all followed downloads together."""
    touched_bytes: int = 0
    """At most, of these."""
    first: int = 0
    """Whatever was touched of any of them lies from here, in bytes from the beginning of its download,"""
    last: int = 0
    """to here."""
    saving_s: float = 0.0
    """What downloading only that part would save at most: the time to copy the rest, as far as the CPU waits for it or
    copies itself."""


class Site(Record, frozen=True, kw_only=True):
    """A distinct call stack that performed an operation, with its totals over the run."""

    call: str
    """The CUDA call as the programmer wrote it (`cudaFree`): the outermost runtime or driver entry of the stack."""
    function: str
    """The driver function (`cuMemFree_v2`), or `private`."""
    caller: str
    """Demangled function that makes the call."""
    file: str
    line: int
    """0 where there is no debug information; the frame's module and offset then name the place."""
    stack: int
    kind: str
    """A name of `ffm.model.timeline.Kind`, in lower case."""
    count: int
    total_s: float
    wait_s: float
    gap_s: float
    bytes: int
    problem_count: int
    """Occurrences with any problem."""
    synchronization: list[Verdict]
    transfer: list[Verdict]
    benefit: Benefit
    download: DownloadUse | None = None
    """None where it downloads nothing, or stage 3 did not look."""
    buffer: str = ""
    """What the program calls the memory: what an allocation fills, what a free frees, the host memory of a transfer.
    Empty where that is not known, or the site has no problem."""


class Group(Record, frozen=True, kw_only=True):
    """Sites that one fix could mend together: a single point or a fold (dissertation 5.2)."""

    name: str
    sites: list[int]
    count: int
    benefit: Benefit
    conditional: bool
    """Whether other synchronizations must be kept for this to hold."""
    parts: list[Group] = msgspec.field(default_factory=list)
    """A fold expanded by calling function, template arguments dropped (Figure 5.3, right)."""


class SequenceOperation(Record, frozen=True, kw_only=True):
    """One numbered line of a sequence (Figure 5.2)."""

    site: int
    count: int
    issues: list[str]
    """`synchronization`, `transfer` or both."""


class Sequence(Record, frozen=True, kw_only=True):
    """Problem operations up to the next necessary synchronization (dissertation 5.2)."""

    operations: list[SequenceOperation]
    recurrences: int
    ends_at: int | None
    """Site of the necessary synchronization that ends it; None at the end of the run."""
    benefit: Benefit


class AllocationLink(Record, frozen=True, kw_only=True):
    """The memory of a site: what it frees, or what it transfers from or to, and where that is allocated and freed."""

    site: int
    role: str
    """`frees`, `host memory` or `destination`."""
    memory: str
    """A memory of the driver's catalogue (`device`, `pinned`, `managed`, ...), or `pageable`."""
    allocation: int | None
    """Site of the allocation, of the driver or of the C library; None where it is not known."""
    release: int | None
    """Site that frees it; None where it was not freed."""
    occurrences: int


class StageCost(Record, frozen=True, kw_only=True):
    """What a stage's run cost against stage 1."""

    stage: str
    wall_s: float
    ratio: float


class Matching(Record, frozen=True, kw_only=True):
    """How much of the runs' time could be matched between stages; the rest is not guessed at."""

    matched_s: float
    unmatched_s: float
    unmatched: list[str]
    """One sentence for each stack whose counts differ, largest first."""


class Explained(Record, frozen=True, kw_only=True):
    """How much of the run's time stage 2 can account for; seconds, over all threads and processes of the run."""

    run_s: float
    """Wall time of the traced run, times its threads that called the driver."""
    calls_s: float
    """Inside traced calls, without waiting."""
    work_s: float
    """CPU work between traced calls."""
    wait_s: float
    """Waiting that the GPU's times explain."""
    unexplained_wait_s: float
    probes_s: float
    """What the probes made it longer by; none of the others holds any of it."""
    latency_s: float
    """From the end of the GPU's work until a waiting CPU goes on, as is usual for one wait."""

    @property
    def share(self) -> float:
        """The explained part of the run's time, 0 to 1. Before a thread's first traced call and after its last nothing
        is known."""
        known = self.calls_s + self.work_s + self.wait_s + self.probes_s
        return min(known / self.run_s, 1.0) if self.run_s > 0 else 0.0


class Analysis(Document, frozen=True, kw_only=True):
    """Stage 5 (dissertation 4.5): problems, benefits and groups. `timeline` names the columnar file of the model."""

    format: ClassVar[str] = "ffm.analysis"
    application: str
    origin: str
    """`ffm`, or `diogenes` for imported results."""
    command: list[str]
    wall_s: float
    timeline: str
    sites: list[Site]
    points: list[Group]
    folds: list[Group]
    sequences: list[Sequence]
    costs: list[StageCost]
    matching: Matching | None
    estimator: str = "carry"
    """The estimator that the views show unless told otherwise."""
    everything: Benefit | None = None
    """What fixing all problems together saves. Groups overlap: their benefits do not add up."""
    wait_latency: WaitLatency = NOT_MEASURED
    explained: Explained | None = None
    """None for imported results, which hold no trace."""
    allocations: list[AllocationLink] = msgspec.field(default_factory=list)
    watch: str = ""
    """How stage 3 watched memory, `pages` or `trace`; empty where it did not."""
    notes: list[str] = msgspec.field(default_factory=list)
    """Sentences that a reader must know: what could not be measured, and what it means."""
