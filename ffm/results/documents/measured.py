"""The documents of the four stages that run the program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import msgspec

from ffm.results.documents.document import Document, Reference
from ffm.results.documents.fields import ByteTime, Count, Number, Record, Seconds, TableFile, one_of
from ffm.results.documents.stacks import StackKey


class WaitingCall(Record, frozen=True, kw_only=True):
    """A place that waited for the GPU in stage 1."""

    function: str
    """The public driver function around the wait; `private` if there is none."""
    stack: Number
    count: Count
    wait_s: Seconds


class Baseline(Document, frozen=True, kw_only=True):
    """Stage 1 (dissertation 4.1): the bare wall time, and which driver functions wait, from where."""

    format: ClassVar[str] = "ffm.baseline"
    waits: list[WaitingCall]
    functions: list[str]
    """Public driver functions that waited, most time first."""

    def references(self) -> Iterator[Reference]:
        """As in `Document`."""
        yield from super().references()
        yield "a wait names stack", (wait.stack for wait in self.waits), len(self.stacks)


class WaitLatency(Record, frozen=True, kw_only=True):
    """How long a wait for the GPU takes beyond the GPU's work, on this machine and driver."""

    least: Count
    """Nanoseconds; nine of ten waits take more."""
    unknown: str = ""
    """Why it could not be measured and is 0; otherwise empty."""


NOT_MEASURED = WaitLatency(least=0, unknown="it was not measured")


class Marked(Record, frozen=True, kw_only=True):
    """An iteration that the program marked (`ffm.iteration`). Times are those of the events' table, nanoseconds."""

    name: str
    process: Number
    thread: Number
    """Within the process."""
    begin: Count
    end: Count


_NumberOrNone = Annotated[int, msgspec.Meta(ge=-1, le=0x7FFFFFFF)]

_TimeOrNone = Annotated[int, msgspec.Meta(ge=-1, le=1 << 60)]


class ThreadLife(Record, frozen=True, kw_only=True):
    """A thread that the program started. Times are those of the events' table, nanoseconds; threads are numbered within
    the process. -1: nobody, or it is unknown.
    """

    process: Number
    thread: Number
    parent: _NumberOrNone
    """Who started it or, if that made no traced call, who started that one, and so on."""
    created: Count
    joined: _TimeOrNone = -1
    joiner: _NumberOrNone = -1


class ProcessorTimes(Record, frozen=True, kw_only=True):
    """For how many nanoseconds threads waited for a processor, as the kernel counted: columns of equal length. Numbers
    as in `ThreadLife`.
    """

    process: list[Number] = msgspec.field(default_factory=list)
    thread: list[Number] = msgspec.field(default_factory=list)
    delayed: list[Count] = msgspec.field(default_factory=list)
    own: list[Annotated[float, msgspec.Meta(ge=0, le=1)]] = msgspec.field(default_factory=list)
    """The share of the processors' time that all threads of the process had, from the start of its recording on."""

    def references(self) -> Iterator[Reference]:
        """Yield nothing: numbers of threads without operations are passed over.

        Raises:
            ValueError: The columns are not of equal length.
        """
        if len({len(getattr(self, name)) for name in self.__struct_fields__}) > 1:
            raise ValueError("the columns of processor times have different lengths")
        yield from ()


class RecordedLockWaits(Record, frozen=True, kw_only=True):
    """Waits of threads, outside of driver calls, that ended because another one let go what they waited for: columns of
    equal length. Times and numbers as in `ThreadLife`.
    """

    process: list[Number] = msgspec.field(default_factory=list)
    waiter: list[Number] = msgspec.field(default_factory=list)
    since: list[Count] = msgspec.field(default_factory=list)
    releaser: list[Number] = msgspec.field(default_factory=list)
    released: list[Count] = msgspec.field(default_factory=list)

    def references(self) -> Iterator[Reference]:
        """Yield nothing: numbers of threads without operations are passed over.

        Raises:
            ValueError: The columns are not of equal length.
        """
        if len({len(self.process), len(self.waiter), len(self.since), len(self.releaser), len(self.released)}) > 1:
            raise ValueError("the columns of waits for locks have different lengths")
        return iter(())


class ContextDevice(Record, frozen=True, kw_only=True):
    """On which device of its process a context is, both by their numbers there, and how large that is."""

    process: Number
    context: Annotated[int, msgspec.Meta(ge=0, le=255)]
    device: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
    uuid: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
    multiprocessors: Count = 0
    """0 if the driver did not say."""
    threads: Count = 0
    """That a multiprocessor can run at once."""


class RequestedBlocks(Record, frozen=True, kw_only=True):
    """Code of a module that requested host memory in blocks of a size, to which something was downloaded."""

    module: Number
    offset: Annotated[int, msgspec.Meta(ge=0)]
    """Of the return address, as in `Frame`."""
    bytes: Count


class LaunchedKernels(Record, frozen=True, kw_only=True):
    """The kernels that a stack launched, as the driver names them, most often launched first."""

    stack: Number
    names: list[str]


class SampledPlace(Record, frozen=True, kw_only=True):
    """A line of the program's own code, or, where that is unknown, its function or its module."""

    function: str
    file: str = ""
    line: Number = 0


class Sampled(Record, frozen=True, kw_only=True):
    """Where the program worked between driver calls, by samples of its threads' processor time.

    Columns of equal length: between a call at the site `before` and one at the site `after` (-1 for the end of the
    thread), the program worked at a `place` for some nanoseconds; 0 if it was never seen there. `beside` is 1 for what
    threads that never call the driver did, while the one that makes these calls was not seen to work.
    """

    period_ns: Count = 0
    """Of a thread's processor time between two samples."""
    places: list[SampledPlace] = msgspec.field(default_factory=list)
    before: list[Number] = msgspec.field(default_factory=list)
    after: list[Annotated[int, msgspec.Meta(ge=-1, le=0x7FFFFFFF)]] = msgspec.field(default_factory=list)
    place: list[Number] = msgspec.field(default_factory=list)
    beside: list[Annotated[int, msgspec.Meta(ge=0, le=1)]] = msgspec.field(default_factory=list)
    nanoseconds: list[Count] = msgspec.field(default_factory=list)

    def references(self, sites: int) -> Iterator[Reference]:
        """Yield what its columns refer to.

        Raises:
            ValueError: They are not of equal length.
        """
        if len({len(self.before), len(self.after), len(self.place), len(self.beside), len(self.nanoseconds)}) > 1:
            raise ValueError("the columns of samples have different lengths")
        yield "a sample names site", self.before, sites
        yield "a sample names site", self.after, sites
        yield "a sample names place", self.place, len(self.places)


class Tracing(Document, frozen=True, kw_only=True):
    """Stage 2 (dissertation 4.2): every operation. `events` names the columnar file (`ffm.evidence.operations`)."""

    format: ClassVar[str] = "ffm.tracing"
    tables: ClassVar[tuple[str, ...]] = ("events", "host_memory")
    events: TableFile
    probe_cost_ns: Annotated[float, msgspec.Meta(ge=0, le=1e12)]
    """Median cost of the probe for one traced call. The columns include the probes' time; stage 5 removes it."""
    host_memory: TableFile
    """Columnar file: where pageable host memory of transfers comes from (`ffm.evidence.transfers.host_memory`)."""
    compute_capability: Number = 0
    """Of the first GPU, 10 * major + minor; 0 if it was not queried because the program contains no device code."""
    wait_latency: WaitLatency = NOT_MEASURED
    pinning_call_ns: Number = 0
    """What a call takes that pins host memory, besides what its bytes take; 0 if it could not be measured."""
    device_copy_byte_ns: ByteTime = 0.0
    """What the GPU takes to copy a byte within its memory; 0 if it could not be measured."""
    pinning_byte_ns: Annotated[float, msgspec.Meta(gt=0, le=1e9)] | None = None
    """What the machine needs to make and zero a byte's share of a page, the least that pinning costs. None if there was
    too little memory to measure it with: stage 5 then measures it on its own machine.
    """
    marked: list[Marked] = msgspec.field(default_factory=list)
    """The iterations that the program marked, in order of their start."""
    sampled: Sampled = msgspec.field(default_factory=Sampled)
    """With the numbers of stacks for those of sites."""
    threads: list[ThreadLife] = msgspec.field(default_factory=list)
    locks: RecordedLockWaits | None = None
    """None if waits for locks were not recorded, since ffm was to leave the program."""
    processor_times: ProcessorTimes | None = None
    """None if they were not recorded, as `locks`."""
    devices: list[ContextDevice] = msgspec.field(default_factory=list)
    kernels: list[LaunchedKernels] = msgspec.field(default_factory=list)
    requested: list[RequestedBlocks] = msgspec.field(default_factory=list)

    def references(self) -> Iterator[Reference]:
        """As in `Document`."""
        yield from super().references()
        yield "a launched kernel names stack", [one.stack for one in self.kernels], len(self.stacks)
        yield "a block was requested by module", [one.module for one in self.requested], len(self.modules)
        yield from self.sampled.references(len(self.stacks))
        if self.locks is not None:
            yield from self.locks.references()
        if self.processor_times is not None:
            yield from self.processor_times.references()


class Memory(Document, frozen=True, kw_only=True):
    """Stage 3 (dissertation 4.3): who used what each synchronization protects; what each transfer repeats.

    `synchronizations` and `transfers` name columnar files with one row per operation of that kind.
    """

    format: ClassVar[str] = "ffm.memory"
    tables: ClassVar[tuple[str, ...]] = ("synchronizations", "transfers", "accesses", "downloads", "gpu_times")
    watch: Annotated[str, one_of("pages", "trace")]
    """How accesses were watched: `pages` or `trace`."""
    ordinary_memory: bool = True
    """Whether kernels may use ordinary memory by its address; false if the user rules that out."""
    chosen: list[StackKey] | None = None
    """The stacks of the waits and transfers that were measured; None for all. The tables contain no others."""
    synchronizations: TableFile
    transfers: TableFile
    accesses: TableFile
    """Columnar file of the accesses that synchronizations were credited with, which stage 4 watches again."""
    downloads: TableFile
    """Columnar file with one row for each download that was followed to its end: its `bytes`, and at most how many of
    them the CPU `touched` before they were overwritten or freed. Those are within `first` to `last`.
    """
    gpu_times: TableFile
    """Columnar file of how long the GPU did the work that was enqueued, if events could time it."""


class SyncUse(Document, frozen=True, kw_only=True):
    """Stage 4 (dissertation 4.4): from the end of each required synchronization to the first use."""

    format: ClassVar[str] = "ffm.sync_use"
    tables: ClassVar[tuple[str, ...]] = ("first_uses",)
    first_uses: TableFile
