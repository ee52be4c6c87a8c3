"""The typed, versioned JSON documents that pass between stages and to the report.

Times are seconds in documents, which people read, and nanoseconds in the columnar files next to them. A document names
its columnar files relative to its own folder. Stacks list frames innermost first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
import orjson

from ffm.errors import DocumentError
from ffm.regular_file import read_regular
from ffm.results.ownership import own_secret
from ffm.results.sealing import digest_of_file, is_signed, is_whole, sealed, take_seal
from ffm.whole_file import write_whole

FORMAT_VERSION = 7
"""Of what the measuring stages write; incremented when a field changes its meaning. Readers refuse other versions."""

MOST_BYTES = 1 << 31
"""No document is larger: a million stacks of 30 frames take a tenth of it."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 60)]
Number = Annotated[int, msgspec.Meta(ge=0, le=0x7FFFFFFF)]
"""An index into a list of the same document, from 0; or a line, from 1."""
TableFile = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9_-]*\.arrow\Z")]
"""A file next to the document, in no other folder."""
Argument = Annotated[str, msgspec.Meta(pattern=r"\A[^\x00]*\Z")]
"""What can be passed to a program."""


def one_of(*texts: str) -> msgspec.Meta:
    """Restrict a text to a few values."""
    return msgspec.Meta(pattern=rf"\A({'|'.join(texts)})\Z")


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything inside a document: immutable, keyword only, no unknown fields.

    msgspec does not inherit `kw_only`, so each subclass repeats it.
    """


class Module(Record, frozen=True, kw_only=True):
    """A file mapped into the program. `build_id` is hexadecimal, or empty if the file has none."""

    path: str
    build_id: str


class Frame(Record, frozen=True, kw_only=True):
    """One frame: its address and, if known, its place in the source.

    `offset` counts from the module's first byte in memory (its load base). For all but the innermost frame it is the
    return address. `inlined` frames share the address of the frame that follows them.
    """

    module: Number
    offset: Annotated[int, msgspec.Meta(ge=0)]
    function: str = ""
    file: str = ""
    line: Number = 0
    inlined: bool = False
    python: bool = False
    """A Python function; it has no address."""


class PythonFrame(Record, frozen=True, kw_only=True):
    """An active Python function, as recorded: at an `entry`, a native frame of the interpreter stands for it and the
    frames within it. Without a name, it is only an entry.
    """

    function: str
    file: str
    line: Number
    entry: bool


StackKey = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]
"""What identifies a call stack in every run."""


class Stack(Record, frozen=True, kw_only=True):
    """A call stack, innermost frame first. `key` is the same in every run: it hashes build-ids and offsets and, in
    Python, files, functions and lines.
    """

    key: StackKey
    frames: list[Frame]
    python: list[PythonFrame] = []
    """The Python functions, until they are among the frames."""
    truncated: bool = False
    """Whether its outer end may be cut off because it was deeper than can be recorded."""


class _StoredStack(Record, frozen=True, kw_only=True):
    """A stack in a file, whose frames are numbers in the file's list of frames."""

    key: StackKey
    frames: list[int]
    python: list[PythonFrame] = []
    truncated: bool = False


def _stored_stacks(stacks: list[Stack]) -> dict[str, Any]:
    """Return what a file says of stacks: each distinct frame once, because stacks have most of theirs in common."""
    numbers: dict[Frame, int] = {}
    stored = [
        {
            "key": stack.key,
            "frames": [numbers.setdefault(frame, len(numbers)) for frame in stack.frames],
            "python": msgspec.to_builtins(stack.python),
            "truncated": stack.truncated,
        }
        for stack in stacks
    ]
    return {"frames": msgspec.to_builtins(list(numbers)), "stacks": stored}


def _taken_stacks(content: dict[str, Any]) -> list[Stack]:
    """Take what `_stored_stacks` returned out of a file's content, and return the stacks.

    Raises:
        ValueError: It is something else.
    """
    frames = msgspec.convert(content.pop("frames", None), list[Frame])
    stored = msgspec.convert(content.pop("stacks", None), list[_StoredStack])
    if any(min(stack.frames, default=0) < 0 or max(stack.frames, default=-1) >= len(frames) for stack in stored):
        raise ValueError(f"a stack names a frame that is not among the {len(frames)}")
    return [
        Stack(
            key=stack.key,
            frames=[frames[number] for number in stack.frames],
            python=stack.python,
            truncated=stack.truncated,
        )
        for stack in stored
    ]


class ExitStatus(Record, frozen=True, kw_only=True):
    """How a program ended: an exit code, the signal that ended it, or our own time limit.

    `accepted` is the exit code other than 0 with which the user said that it may end.
    """

    code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    accepted: int = 0
    cut: Literal["time", "interruption"] | None = None
    """Why ffm ended the recording, and then the program, before it ended by itself: it had been measured for the time
    asked for, or ffm was interrupted. Then how it ended says nothing about it.
    """
    left: bool = False
    """After that, the program was left running."""

    @property
    def sound(self) -> bool:
        """Whether the program ended by itself as it should, or was measured until ffm ended the recording."""
        return self.cut is not None or (self.code in (0, self.accepted) and not self.timed_out)

    def __str__(self) -> str:
        """Say it after the program's name."""
        if self.left:
            return "was left running by ffm"
        if self.cut is not None:
            return "was ended by ffm"
        if self.timed_out:
            return "exceeded the time limit and was stopped"
        if self.signal is not None:
            return f"was ended by the signal {self.signal}"
        return f"exited with code {self.code}"


class ProcessRecord(Record, frozen=True, kw_only=True):
    """One process of a run that loaded a driver."""

    process_id: int
    executable: str
    rank: int | None
    """Rank under an MPI launcher, from its environment; None if there is none."""
    recording: str
    """File name of the raw recording, relative to the document."""
    threads: Count
    operations: Count
    lost: Count
    """Operations that could not be recorded (disk full); 0 in a complete run."""
    unfinished: Count = 0
    """Driver calls that had begun when ffm ended the recording, and returned later: they are not recorded."""
    python: str = ""
    """Version of its Python interpreter, such as `3.12.1`."""
    python_readable: bool = False
    """Whether its stacks contain Python functions."""
    ordinary_memory: bool = False
    """Whether a kernel received what may be the address of ordinary memory: everything counts as used from then on."""


class HookOutcome(Record, frozen=True, kw_only=True):
    """How one driver function was hooked: `replace-fast`, `replace`, `attach`, `shared` (another name of hooked code)
    or `failed`, with the reason."""

    function: str
    how: str
    reason: str = ""


class Driver(Record, frozen=True, kw_only=True):
    """The GPU driver of a run, and its internal wait function as an offset from its load base."""

    path: str
    build_id: str
    wait_function: int | None
    wait_function_found: str
    """How the wait function was found, or why not, in one phrase."""


class Portion(Record, frozen=True, kw_only=True):
    """What was measured of a run. Outside of it, operations were let through without a record, and nothing is judged.

    Either a window (`start_s` to `end_s`, in seconds since the first driver call), or iterations that the program
    marked: all with the name `ranges` (any, if it is empty), or every n-th of them; or, with `cut`, all of the run
    until ffm ended the recording.
    """

    start_s: Seconds | None = None
    end_s: Seconds | None = None
    """None for the end of the run."""
    first_call: Count = 0
    end_call: Count | None = None
    """The window in calls of the process that transfer, set, launch, wait, allocate or free, by which the later stages
    find it again.
    """
    ranges: str | None = None
    every: Count = 1
    stretches: Count
    """How many pieces of the run were measured."""
    measured_s: Seconds
    """Their time, over all processes that used the driver at most."""
    iterations: Count = 0
    """Marked iterations of the run."""
    judged: Count = 0
    """Those of them that were measured and judged."""
    last_s: Seconds | None = None
    """Only so many seconds before its end were kept, if it took longer than that."""
    dropped: Count = 0
    """Operations that were recorded before these."""
    cut: bool = False
    left: bool = False
    """The program was left running after that."""


class Run(Record, frozen=True, kw_only=True):
    """One measured execution of the program."""

    stage: str
    command: Annotated[list[Argument], msgspec.Meta(min_length=1)]
    working_directory: str
    started: str
    """ISO 8601, UTC."""
    wall_s: Seconds
    """From the start of the program to its end, without `preparation_s`."""
    preparation_s: Seconds
    """For how long the run stood still because a process was held to be hooked: the first process if it uses the driver
    itself, otherwise any of those that it launched (`ffm.instrument.session.held_times`).
    """
    held_beside_s: Seconds = 0.0
    """The part of `preparation_s` in which another process ran: `wall_s` is too short by up to this if that process
    waited for no other.
    """
    user_s: Seconds
    system_s: Seconds
    delayed_s: Seconds | None = None
    """How long the program's main thread was ready to run but had no processor, because others had it; None if the
    kernel does not tell.
    """
    waiting_span_s: Seconds | None = None
    """From the end of the second wait for the GPU to that of the last one, in the process in which that is longest: the
    first may be anywhere in a call that creates a context. None if there are none, or only a part of the run was
    recorded.
    """
    status: ExitStatus
    processes: list[ProcessRecord]
    unrecorded: Count = 0
    """Further processes, which ended before their recordings began, and so before they could call the driver."""
    hooks: list[HookOutcome]
    driver: Driver | None
    portion: Portion | None = None
    """What of it was measured; None for all."""

    @property
    def sees_waits(self) -> bool:
        """Whether the driver's internal wait function was hooked, which shows each wait and its length."""
        return self.driver is None or self.driver.wait_function is not None


def working_directory() -> str:
    """Return the current folder as documents name it."""
    return os.fsencode(Path.cwd()).decode(errors="replace")


Reference = tuple[str, Iterable[int], int]
"""What refers to what, in words; the numbers; and how many targets there are, from 0."""


class Document(Record, frozen=True, kw_only=True):
    """A file of results. Subclasses set `format`; `version` must be the `written` one on reading.

    `tables` lists the fields that name columnar files, which are next to the document. `checksums` are those of these
    files, by field, as determined by `write_document`.
    """

    format: ClassVar[str]
    written: ClassVar[int] = FORMAT_VERSION
    tables: ClassVar[tuple[str, ...]] = ()
    shares_frames: ClassVar[bool] = True
    """Whether stacks name their frames by number in the file, which then has each once."""
    version: int = written
    runs: dict[str, str] = {}
    """Identity, by stage, of the run that the document describes and of those that it was built on
    (`ffm.results.folder.identity`).
    """
    run: Run | None = None
    modules: list[Module] = []
    stacks: list[Stack] = []
    checksums: dict[str, str] = {}

    def references(self) -> Iterator[Reference]:
        """Yield everything in the document that is the number of something else in it."""
        modules = {frame.module for stack in self.stacks for frame in stack.frames}
        yield "a frame names module", modules, len(self.modules)

    def check(self) -> None:
        """Check what no single field can show.

        Raises:
            ValueError: A number refers to nothing; the message says which.
        """
        for what, numbers, count in self.references():
            if (highest := max(numbers, default=-1)) >= count:
                raise ValueError(f"{what} {highest} of {count}")


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


class ContextDevice(Record, frozen=True, kw_only=True):
    """On which device of its process a context is, both by their numbers there."""

    process: Number
    context: Annotated[int, msgspec.Meta(ge=0, le=255)]
    device: Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
    uuid: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{32}\Z")]


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
    """Where the program worked between driver calls, by samples of its threads' processor time in user mode.

    Columns of equal length: between a call at the site `before` and one at the site `after` (-1 for the end of the
    thread), the program worked at a `place` for some nanoseconds; 0 if it was never seen there.
    """

    places: list[SampledPlace] = []
    before: list[Number] = []
    after: list[Annotated[int, msgspec.Meta(ge=-1, le=0x7FFFFFFF)]] = []
    place: list[Number] = []
    nanoseconds: list[Count] = []

    def references(self, sites: int) -> Iterator[Reference]:
        """Yield what its columns refer to.

        Raises:
            ValueError: They are not of equal length.
        """
        if len({len(self.before), len(self.after), len(self.place), len(self.nanoseconds)}) > 1:
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
    """What a call takes that pins host memory, beside what its bytes take; 0 if it could not be measured."""
    marked: list[Marked] = []
    """The iterations that the program marked, in order of their begin."""
    sampled: Sampled = Sampled()
    """With the numbers of stacks for those of sites."""
    threads: list[ThreadLife] = []
    devices: list[ContextDevice] = []
    kernels: list[LaunchedKernels] = []

    def references(self) -> Iterator[Reference]:
        """As in `Document`."""
        yield from super().references()
        yield "a launched kernel names stack", [one.stack for one in self.kernels], len(self.stacks)
        yield from self.sampled.references(len(self.stacks))


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


DocumentType = TypeVar("DocumentType", bound=Document)


def write_document(document: DocumentType, path: Path, *, own: bool = False) -> DocumentType:
    """Write a document as JSON, completely or not at all, so that readers never see a partial file. Its tables must
    exist.

    `own` means that this user measured its content: it is signed, if the user has a place for the secret. Returns the
    document as it was written, with the checksums of its tables.

    Raises:
        OSError: The file cannot be written, or a table cannot be read.
    """
    checksums = {name: digest_of_file(path.with_name(getattr(document, name))) for name in document.tables}
    document = msgspec.structs.replace(document, checksums=checksums)
    if document.shares_frames:
        content = msgspec.to_builtins(msgspec.structs.replace(document, stacks=[])) | _stored_stacks(document.stacks)
    else:
        content = msgspec.to_builtins(document)
    head = {"format": document.format, "version": content.pop("version")}
    encoded = sealed(head, content, own_secret(make=True) if own else None)
    write_whole(path, encoded)
    return document


def missing(path: Path, stage: str) -> DocumentError:
    """Return the error that the document of a stage does not exist."""
    return DocumentError(f"{path} does not exist. Run `ffm stage {stage}` first.")


def read_owned(kind: type[DocumentType], path: Path) -> tuple[DocumentType, bool]:
    """Read and check a document of the given kind; also return whether this user measured its content.

    Raises:
        DocumentError: It is missing, truncated, edited, of another kind or version, or has invalid content. The message
            names the file and the command that recreates it.
    """
    try:
        data = read_regular(path, MOST_BYTES)
    except FileNotFoundError:
        raise missing(path, _stage(kind)) from None
    except OSError as error:
        raise StoredError(f"{path} cannot be read: {error.strerror}.", kind) from error
    content = _decoded(kind, path, data)
    seal = take_seal(content)
    if not is_whole(data, seal):
        raise edited(kind, path)
    try:
        stacks = _taken_stacks(content) if kind.shares_frames else None
        document = msgspec.convert(content, kind)
        if stacks is not None:
            document = msgspec.structs.replace(document, stacks=stacks)
        document.check()
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise StoredError(f"{path} is not as this ffm writes it ({error}).", kind) from error
    return document, is_signed(data, seal, own_secret())


class StoredError(DocumentError):
    """A document of some kind, or one of its tables, is damaged or lost."""

    help = "Measure again."

    def __init__(self, what: str, kind: type[Document]) -> None:
        super().__init__(what)
        self.help = _make_anew(kind)


class OtherVersionError(StoredError):
    """A document was written by another version of ffm. Then those of the other stages were, too."""

    def __init__(self, what: str, kind: type[Document]) -> None:
        super().__init__(what, kind)
        if kind.format != "ffm.analysis":
            self.help = "Measure all stages of the program again: `snakemake --forceall --config app=./program`."


def edited(kind: type[Document], path: Path) -> DocumentError:
    """Return the error that a file, a document of this kind or one of its tables, was changed after it was written."""
    return StoredError(f"{path} was edited or truncated.", kind)


def _make_anew(kind: type[Document]) -> str:
    """Return which command recreates a document of this kind; that of all, if the kind is just `Document`."""
    if kind is Document:
        return "Measure again."
    if kind.format == "ffm.analysis":
        return "Recreate it with `ffm stage analysis`, or import it again."
    return f"Measure again with `ffm stage {_stage(kind)}` and the stages after it."


def _stage(kind: type[Document]) -> str:
    return kind.format.removeprefix("ffm.").replace("_", "-")


def _decoded(kind: type[Document], path: Path, data: bytes) -> dict[str, Any]:
    """Return the fields of a document with the right format and version. For another version, the error says
    just that.
    """
    try:
        content = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise edited(kind, path) from None
    if not isinstance(content, dict) or content.pop("format", None) != kind.format:
        raise StoredError(f"{path} is not a document of the format {kind.format}.", kind)
    if content.get("version") != kind.written:
        raise OtherVersionError(
            f"{path} has version {content.get('version')!r:.40}, but this ffm reads version {kind.written}.", kind
        )
    return content
