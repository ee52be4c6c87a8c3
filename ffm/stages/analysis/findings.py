"""What stage 5's document is built from.

Measured and imported results go through the same steps: a timeline, a description of each site (call stack), and its
meaning. In a measured timeline each row is one operation; in an imported one it sums up a stack.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ffm.model.device import DeviceWork
from ffm.model.groups.sequences import FoundSequence, Membership
from ffm.model.timeline import Timeline
from ffm.results.documents.analysis import AllocationLink, MarkedIterations, Matching, PinnedMemory, StageCost
from ffm.results.documents.measured import NOT_MEASURED, Sampled, WaitLatency
from ffm.results.documents.notes import AnyNote
from ffm.results.documents.run import Run
from ffm.results.documents.site import DownloadUse, Verdict
from ffm.results.documents.stacks import Module, Stack


@dataclass(frozen=True, slots=True)
class SiteDescription:
    """What is known about a site in addition to its rows. `stack` indexes `Findings.stacks`, frames innermost first."""

    stack: int
    function: str
    """The driver function, `private` if a library waited without one, or empty if unknown."""
    bytes: int = 0
    """Bytes that all its transfers moved."""
    synchronization: list[Verdict] = field(default_factory=list)
    transfer: list[Verdict] = field(default_factory=list)
    download: DownloadUse | None = None
    """As in `documents.site.Site`."""
    buffer: str = ""
    """As in `documents.site.Site`."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """Waits of Python code for values that the CPU uses, or may use: one entry for each row of the timeline."""

    site: NDArray[np.int32]
    """The site at which values are fetched, if the row waits for that; otherwise -1."""
    watched: NDArray[np.bool_]
    """Whether the CPU was seen to use what the row waits for."""


@dataclass(frozen=True, slots=True)
class Sending:
    """Waits of Python code for uploads, without which it would overwrite what they read: one entry for each row of the
    timeline.
    """

    site: NDArray[np.int32]
    """The site that waits for uploads, if the row is among its waits; otherwise -1."""
    pageable: NDArray[np.bool_]
    """Whether the row waits for an upload from pageable memory."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that the analysis document is built from.

    `sites[i]` describes the rows with `timeline.site == i`. `sequences` and `bound_s` are for imports: sequences that
    cannot be found in the rows, and seconds per site that another tool computed from more than the rows contain.
    """

    application: str
    command: list[str]
    wall_s: float
    timeline: Timeline
    sites: list[SiteDescription]
    stacks: list[Stack]
    modules: list[Module]
    origin: str = "ffm"
    runs: dict[str, str] = field(default_factory=dict)
    run: Run | None = None
    costs: list[StageCost] = field(default_factory=list)
    matching: Matching | None = None
    allocations: list[AllocationLink] = field(default_factory=list)
    pinning: list[PinnedMemory] = field(default_factory=list)
    notes: list[AnyNote] = field(default_factory=list)
    sequences: tuple[list[FoundSequence], Membership] | None = None
    bound_s: NDArray[np.float64] | None = None
    work: DeviceWork | None = None
    """What the operations do on the GPU; None if no trace shows it."""
    timing: NDArray[np.uint8] | None = None
    """For each row of the timeline, if its wait serves only timing, how surely: a `Comparison` of
    `ffm.model.necessity.rules`; otherwise 0. None if none does, or it is unknown.
    """
    sharing: NDArray[np.bool_] | None = None
    """For each row of the timeline, whether nothing relies on its wait but, possibly, another process that shares
    device memory. None if there is none, or it is unknown.
    """
    ordering: NDArray[np.bool_] | None = None
    """For each row of the timeline, whether it is a synchronization on which only later work of other streams relies.
    None if there is none, or it is unknown.
    """
    equal_bytes: NDArray[np.bool_] | None = None
    """For each row of the timeline, whether it uploads bytes that repeat others, but come from elsewhere in host
    memory, so that they may be other data. None if there is none, or it is unknown.
    """
    fetching: Fetching | None = None
    """Where Python code fetches values again and again. None if it does nowhere, or it is unknown."""
    sending: Sending | None = None
    """Where Python code waits for uploads again and again. None if it does nowhere, or it is unknown."""
    unproved: NDArray[np.bool_] | None = None
    """For each row of a profiler's timeline, whether it waits, or would if there were work; whether the program needs
    that is unknown. None for measured runs.
    """
    presumed: bool = False
    """Whether one traced run is all that there is: then every wait and transfer is presumed unnecessary, to say what
    doing without it would save at most.
    """
    wait_latency: WaitLatency = NOT_MEASURED
    device_copy_byte_ns: float = 0.0
    """As in `documents.measured.Tracing`."""
    marked: list[MarkedIterations] = field(default_factory=list)
    """As in `documents.analysis.Analysis`."""
    watch: str = ""
    """As in `documents.analysis.Analysis`."""
    not_measured: list[int] = field(default_factory=list)
    """As in `documents.analysis.Analysis`."""
    staged: list[int] = field(default_factory=list)
    """As in `documents.analysis.Analysis`."""
    probes_s: float = 0.0
    """As in `documents.analysis.Explained`."""
    sampled: Sampled = field(default_factory=Sampled)
    """As in `documents.analysis.Analysis`."""
    kernels: dict[int, list[str]] = field(default_factory=dict)
    """By site, as in `documents.site.Site`."""
