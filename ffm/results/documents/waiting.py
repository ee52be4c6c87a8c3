"""What a run waited for, as stage 5's document says it: regions of the program, patterns of waiting, use of GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from ffm.results.documents.document import Reference
from ffm.results.documents.fields import Count, Number, Record, Seconds, one_of


class Region(Record, frozen=True, kw_only=True):
    """A part of the program; `path_s` is how many of its seconds are on the critical path."""

    kind: Annotated[str, one_of("CPU", "call", "kernel", "transfer")]
    name: str
    place: str
    """`als.cu:120`, or `als.cu:120-188` for CPU work; empty if it is part of the name, or unknown."""
    sites: list[Number]
    """The sites of its calls or GPU work, from 0; for CPU work, of the calls before it."""
    count: Count
    total_s: Seconds
    path_s: Seconds
    blamed_s: Seconds
    """GPU work: how long the CPU waited for it. Others: how long the GPU was idle meanwhile, until the same thread gave
    it work.
    """
    threads_s: Seconds
    """How long other threads of a team waited for it."""
    passed_on_s: Seconds
    """How much more it is to blame for if blame for waiting is passed on to what was waited for."""
    faster_bound_s: Seconds
    """As `ffm.model.waiting.bounds.Bounds.faster`; idle time of the GPU counts as waiting."""
    even_bound_s: Seconds
    """As `ffm.model.waiting.bounds.Bounds.even`."""
    tenth_s: Seconds | None = None
    """What the run would save if it were 10 % faster,"""
    gone_s: Seconds | None = None
    """and if it were gone; None if that was not replayed."""

    @property
    def full_name(self) -> str:
        """What distinguishes it from others."""
        return f"{self.kind} {self.name} {self.place}".rstrip()


class Occurring(Record, frozen=True, kw_only=True):
    """How often a pattern of waiting occurred, and how long it took together."""

    count: Count
    seconds: Seconds


class UsedGpu(Record, frozen=True, kw_only=True):
    """How a process, numbered from 0, used a GPU, as in `ffm.model.waiting.patterns.GpuUse`."""

    process: Number
    device: Number | None
    lasting_s: Seconds
    idle_s: Seconds
    compute_idle_s: Seconds
    unhidden_s: Seconds
    copy_overlap_s: Seconds


class GuessedWork(Record, frozen=True, kw_only=True):
    """Work of the GPU of which nothing shows how long it takes, as in `ffm.model.gpu_times.timelines.GuessedTotals`."""

    count: Count
    least_s: Seconds
    likely_s: Seconds
    most_s: Seconds | None


class Waiting(Record, frozen=True, kw_only=True):
    """What a run waited for, besides the shares of its critical path. The fields of patterns are those of
    `ffm.model.waiting.patterns.Patterns`.
    """

    regions: list[Region]
    """Those with most seconds on the path first."""
    early: Occurring
    early_on_kernels_s: Seconds
    late: Occurring
    late_transfer: Occurring
    launch_delay: Occurring
    late_sender: Occurring
    late_receiver: Occurring
    collective: Occurring
    barrier: Occurring
    imbalance: Occurring
    locks: Occurring
    polling: Occurring
    offload: Occurring
    consecutive: Occurring
    gpu: list[UsedGpu]
    waits_recorded: bool
    """Whether a profiler recorded which threads and processes waited for each other."""
    starts_recorded: bool
    """Whether it was recorded which thread started and joined which."""
    locks_recorded: bool = False
    """Whether waits for locks and the like were recorded."""
    processes: Count
    threads: Count
    guessed: GuessedWork | None = None
    """None if a profiler recorded the GPU's times."""
    unaccounted_s: Seconds = 0.0
    """How long GPU work on the path began after its launch for no reason that is known: that belongs to no region."""

    @property
    def length_s(self) -> float:
        """The length of the critical path: the time from the run's first traced call to the end of its last work."""
        return self.unaccounted_s + sum(region.path_s for region in self.regions)

    def references(self, sites: int) -> Iterator[Reference]:
        """As `ffm.results.documents.document.Document.references`."""
        yield "a region names site", (site for region in self.regions for site in region.sites), sites
