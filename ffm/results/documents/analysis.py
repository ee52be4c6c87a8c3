"""What stage 5 found, as a document: the call sites with their verdicts, groups of them, and what fixing each saves.

As in `ffm.results.documents`, times are seconds if a name ends in `_s`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec

from ffm.results.documents.benefit import Benefit
from ffm.results.documents.document import Document, Reference
from ffm.results.documents.fields import Argument, ByteTime, Count, Number, Record, Seconds, Share, TableFile, one_of
from ffm.results.documents.measured import NOT_MEASURED, Sampled, WaitLatency
from ffm.results.documents.notes import AnyNote
from ffm.results.documents.run import Portion
from ffm.results.documents.site import Site, Watch
from ffm.results.documents.waiting import Waiting

SignedSeconds = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]
"""A difference of times; a value close to zero may be slightly negative."""

MOST_OVERESTIMATED = 100
"""How many times a run's length imported totals may add up to, because threads are not distinguished."""

DEEPEST_GROUP = 8
"""Maximum nesting of parts in groups; a fold has two levels."""


class Group(Record, frozen=True, kw_only=True):
    """Sites that one fix could correct together: a single point or a fold (dissertation 5.2)."""

    name: str
    sites: list[Number]
    count: Count
    benefit: Benefit
    conditional: bool
    """Whether other synchronizations must be kept for this to hold."""
    parts: list[Group] = msgspec.field(default_factory=list)
    """A fold expanded by calling function, template arguments dropped (Figure 5.3, right)."""


class SequenceOperation(Record, frozen=True, kw_only=True):
    """One numbered line of a sequence (Figure 5.2)."""

    site: Number
    count: Count
    problems: list[Annotated[str, one_of("synchronization", "transfer")]]
    """`synchronization`, `transfer` or both."""


class SequencePart(Record, frozen=True, kw_only=True):
    """Operations `start` to `end` of a sequence, numbered from 1, both included, and what fixing them saves."""

    start: Number
    end: Number
    benefit: Benefit


class Sequence(Record, frozen=True, kw_only=True):
    """Problem operations up to the next necessary synchronization (dissertation 5.2)."""

    operations: list[SequenceOperation]
    recurrences: Count
    ends_at: Number | None
    """Site of the necessary synchronization that ends it; None at the end of the run."""
    benefit: Benefit
    parts: list[SequencePart] = msgspec.field(default_factory=list)
    """All of its parts but the whole, in long runs; empty if a viewing command estimates them."""


class KeptWait(Record, frozen=True, kw_only=True):
    """Waits of a site that are not problems, and what not waiting there would save."""

    site: Number
    occurrences: Count
    saving_s: Seconds
    low_s: Seconds
    high_s: Seconds


class TimingWait(KeptWait, frozen=True, kw_only=True):
    """The program needs them only to measure times."""

    certain: bool
    """Whether the program itself reads a clock afterwards; otherwise a library or another thread does."""


class FetchingWait(KeptWait, frozen=True, kw_only=True):
    """Python code waits there more than once for what the CPU then uses, or may use. Where it need not have each value
    at once, the values can stay on the GPU.
    """

    watched: bool
    """Whether the CPU was seen to use the values; otherwise their use could not be watched."""


class SendingWait(KeptWait, frozen=True, kw_only=True):
    """Python code waits there more than once for uploads, and then writes to what they read. Copies that do not wait
    would do if it wrote there later.
    """

    pageable: bool
    """Whether some of them upload from pageable memory."""


class AllocationLink(Record, frozen=True, kw_only=True):
    """The memory of a site: what it frees, or transfers from or to, and where that memory is allocated and freed."""

    site: Number
    role: Annotated[str, one_of("frees", "host memory", "destination")]
    """`frees`, `host memory` or `destination`."""
    memory: str
    """A memory of the driver's catalogue (`device`, `pinned`, `managed`, ...), or `pageable`."""
    allocation: Number | None
    """Site of the allocation, by the driver or the C library; None if unknown."""
    release: Number | None
    """Site that frees it; None if it was not freed."""
    occurrences: Count


class PinnedMemory(Record, frozen=True, kw_only=True):
    """Pageable host memory that must be pinned before any of these sites' transfers can do without their wait."""

    sites: list[Number]
    bytes: Count
    cost_s: Seconds
    """What pinning it once costs."""


class StageCost(Record, frozen=True, kw_only=True):
    """What a stage's run cost compared with stage 1."""

    stage: str
    wall_s: Seconds
    ratio: Annotated[float, msgspec.Meta(ge=0, le=1e12)]
    delayed_s: Seconds = 0.0
    """How long the program's main thread was ready to run but had no processor; 0 if it is unknown."""
    waiting_span_s: Seconds | None = None
    """As in `ffm.results.documents.run.Run`."""


class UnmatchedSite(Record, frozen=True, kw_only=True):
    """A site of whose operations in stage 2 some have no counterpart in stage 3. They count as needed."""

    site: Number
    operations: Count


class ChosenByChance(Record, frozen=True, kw_only=True):
    """A site that several threads call, where some operations are problems and others are not. Which thread does which
    task differs from run to run, so how many are problems is known, and which ones is not.
    """

    site: Number
    operations: Count
    """Operations that are problems,"""
    of: Count
    """of so many that may be."""
    least: Share
    """How long as many operations last if they are the shortest ones, as a share of how long the chosen ones last;"""
    most: Annotated[float, msgspec.Meta(ge=1)]
    """likewise if they are the longest ones."""


class Matching(Record, frozen=True, kw_only=True):
    """How much of the runs' time could be matched between stages; nothing is estimated for the rest."""

    matched_s: Seconds
    unmatched_s: Seconds
    unmatched: list[UnmatchedSite]
    """The sites with the most operations that have no counterpart, largest first."""
    by_chance: list[ChosenByChance] = msgspec.field(default_factory=list)


class Explained(Record, frozen=True, kw_only=True):
    """How much of the run's time stage 2 can account for; seconds, over all threads and processes of the run."""

    run_s: Seconds
    """Wall time of the traced run, times its threads that called the driver."""
    calls_s: SignedSeconds
    """Inside traced calls, without waiting."""
    work_s: SignedSeconds
    """CPU work between traced calls."""
    wait_s: Seconds
    """Waiting that the GPU's times explain."""
    unexplained_wait_s: SignedSeconds
    probes_s: SignedSeconds
    """How much longer the probes made the run; the other fields do not include it."""
    latency_s: SignedSeconds
    """The usual time of one wait from the end of the GPU's work until the waiting CPU continues."""

    @property
    def share(self) -> float:
        """The explained part of the run's time, 0 to 1. Nothing is known about the time before a thread's first traced
        call and after its last.
        """
        known = self.calls_s + self.work_s + self.wait_s + self.probes_s
        return min(known / self.run_s, 1.0) if self.run_s > 0 else 0.0


class PathShares(Record, frozen=True, kw_only=True):
    """The run's critical path (`ffm.model.waiting.path`), by kind of time."""

    cpu_s: Seconds
    """The program's own work between driver calls."""
    calls_s: Seconds
    """Driver calls, without their waits."""
    kernels_s: Seconds
    transfers_s: Seconds
    """The GPU copies or sets memory."""
    overhead_s: Seconds
    """From the end of the GPU's work until the CPU continued, and from a launch until the work began."""
    unknown_s: Seconds
    """Waits for nothing that the trace shows."""
    agreed: Share | None = None
    """On which share of it all timelines of the GPU agree; None if the GPU's times were recorded."""


class MarkedIterations(Record, frozen=True, kw_only=True):
    """The iterations that the program marked with a name, on one thread: rows of the timeline.

    Iteration i has the rows `begin[i]` to before `end[i]`.
    """

    name: str
    thread: Number
    """As in the timeline, from 0."""
    begin: list[Count]
    end: list[Count]


UNPROVED = ("quick", "nsys", "pytorch", "otf2")
"""Origins of a single trace, which does not show what the program needs."""


class Analysis(Document, frozen=True, kw_only=True):
    """Stage 5 (dissertation 4.5): problems, benefits and groups.

    `timeline` names the columnar file of the model, `gpu_times` that of the GPU's times, which is empty if no single
    operations are known.
    """

    format: ClassVar[str] = "ffm.analysis"
    written: ClassVar[int] = 20
    tables: ClassVar[tuple[str, ...]] = ("timeline", "gpu_times")
    version: int = written
    application: str
    origin: Annotated[str, one_of("ffm", "quick", "diogenes", "nsys", "pytorch", "otf2")]
    """`ffm`; `quick` for one traced run, which proves nothing; or the tool whose measurements were imported."""
    command: list[Argument]
    wall_s: Seconds
    timeline: TableFile
    gpu_times: TableFile = "gpu-times.arrow"
    sites: list[Site]
    points: list[Group]
    folds: list[Group]
    sequences: list[Sequence]
    costs: list[StageCost]
    matching: Matching | None
    estimator: Annotated[str, one_of("replay", "carry", "bound")] = "carry"
    """The estimator that the views show by default."""
    everything: Benefit | None = None
    """What fixing all problems together saves. Groups overlap, so their benefits do not add up."""
    without_equal_bytes: Benefit | None = None
    """The same without the uploads whose bytes come from elsewhere in host memory than those that they repeat, and may
    be other data; None if there are none.
    """
    wait_latency: WaitLatency = NOT_MEASURED
    device_copy_byte_ns: ByteTime = 0.0
    """As in `documents.measured.Tracing`."""
    explained: Explained | None = None
    """None for imported results, which have no trace."""
    path: PathShares | None = None
    """None for imported totals, which have no trace."""
    waiting: Waiting | None = None
    """What the run waited for; None if there is no path."""
    timing: list[TimingWait] = msgspec.field(default_factory=list)
    """The most expensive sites that wait only for timing, or may do so, largest saving first. They are no problems: the
    program as it is written needs them.
    """
    sharing: list[KeptWait] = msgspec.field(default_factory=list)
    """Likewise, the most expensive sites that wait for nothing known but device memory that another process shares."""
    ordering: list[KeptWait] = msgspec.field(default_factory=list)
    """Likewise, the most expensive synchronizations that only let work of one stream come after that of another: events
    could do that, and the savings are those with events.
    """
    fetching: list[FetchingWait] = msgspec.field(default_factory=list)
    """Likewise, the most expensive sites at which Python code fetches values, or may do so, more than once."""
    sending: list[SendingWait] = msgspec.field(default_factory=list)
    """Likewise, the most expensive sites at which Python code waits for uploads, more than once."""
    unproved: list[KeptWait] = msgspec.field(default_factory=list)
    """The most expensive waits of a profiler's trace, which does not show who relies on them; in quick mode, all sites
    that wait or transfer. `high_s` is what doing without them saves at most.
    """
    allocations: list[AllocationLink] = msgspec.field(default_factory=list)
    pinning: list[PinnedMemory] = msgspec.field(default_factory=list)
    """What the benefits of synchronous transfers already allow for."""
    watch: Watch = ""
    """How stage 3 watched memory, `pages` or `trace`; empty if it did not."""
    not_measured: list[Number] = msgspec.field(default_factory=list)
    """Sites that wait or transfer and were left out of the measurement (`ffm run --sites`): whether the program needs
    them is unknown, and what is said of others holds as long as these stay.
    """
    staged: list[Number] = msgspec.field(default_factory=list)
    """Sites that copy asynchronously from or to pageable memory: the driver stages that, and may wait for the stream.
    """
    marked: list[MarkedIterations] = msgspec.field(default_factory=list)
    """Iterations that the program marked."""
    portion: Portion | None = None
    """What was measured of the run; None for all."""
    sampled: Sampled = Sampled()
    """Where the program worked between calls, as far as that was sampled."""
    notes: list[AnyNote] = msgspec.field(default_factory=list)
    """What a reader must know: what could not be measured."""

    @property
    def proves(self) -> bool:
        """Whether it says what the program needs."""
        return self.origin not in UNPROVED

    def references(self) -> Iterator[Reference]:
        """As in `Document`.

        Raises:
            ValueError: Groups are nested too deeply.
        """
        yield from super().references()
        yield "a site names stack", (site.stack for site in self.sites), len(self.stacks)
        sites = len(self.sites)
        verdicts = [verdict for site in self.sites for verdict in (*site.synchronization, *site.transfer)]
        named = (number for verdict in verdicts for number in (verdict.keep, verdict.first) if number is not None)
        yield "a verdict names site", named, sites
        yield "a group names site", (number for group in _all_groups(self) for number in group.sites), sites
        lines = (operation.site for sequence in self.sequences for operation in sequence.operations)
        yield "a sequence names site", lines, sites
        ends = (sequence.ends_at for sequence in self.sequences if sequence.ends_at is not None)
        yield "a sequence ends at site", ends, sites
        yield "a wait for timing names site", (wait.site for wait in self.timing), sites
        yield "a wait for shared memory names site", (wait.site for wait in self.sharing), sites
        yield "a wait for order names site", (wait.site for wait in self.ordering), sites
        yield "a wait for values names site", (wait.site for wait in self.fetching), sites
        yield "a wait for uploads names site", (wait.site for wait in self.sending), sites
        yield "a staged copy names site", self.staged, sites
        yield "what was not measured names site", self.not_measured, sites
        if self.matching is not None:
            yield "an unmatched operation names site", (one.site for one in self.matching.unmatched), sites
        yield "an unproved wait names site", (wait.site for wait in self.unproved), sites
        yield from self.sampled.references(sites)
        if self.waiting is not None:
            yield from self.waiting.references(sites)
        yield "pinned memory names site", (number for memory in self.pinning for number in memory.sites), sites
        for link in ("site", "allocation", "release"):
            linked = (getattr(allocation, link) for allocation in self.allocations)
            yield "an allocation names site", (number for number in linked if number is not None), sites

    def check(self) -> None:
        """As in `Document`; also check that no fix saves more than the run takes, if that was measured.

        Raises:
            ValueError: As there, or a benefit is larger than the run.
        """
        super().check()
        holders: list[Site | Group | Sequence] = [*self.sites, *_all_groups(self), *self.sequences]
        benefits = [holder.benefit for holder in holders]
        most = max((_most(benefit) for benefit in benefits), default=0.0)
        limit = self.wall_s * (1 if self.origin in ("ffm", "quick") else MOST_OVERESTIMATED)
        if most > limit * 1.000001:
            raise ValueError(f"a fix saves {most:g} s of {self.wall_s:g} s")


def _most(benefit: Benefit) -> float:
    """Return the largest number of a benefit."""
    return max(benefit.carry_s, benefit.bound_s, benefit.replay_s or 0.0, benefit.low_s or 0.0, benefit.high_s or 0.0)


def _all_groups(analysis: Analysis) -> Iterator[Group]:
    """Yield all groups, and their parts, level by level."""
    level = [*analysis.points, *analysis.folds]
    for _ in range(DEEPEST_GROUP):
        yield from level
        level = [part for group in level for part in group.parts]
    if level:
        raise ValueError("groups are nested too deeply")
