"""The typed, versioned JSON documents that pass between stages and to the report.

Times are seconds in documents (people read them) and nanoseconds in the columnar files beside them.
A document names its columnar files relative to its own folder. Stacks list frames innermost first.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, TypeVar

import msgspec
import orjson

from ffm.stages.errors import DocumentError
from ffm.whole_file import write_whole

FORMAT_VERSION = 3
"""Raised when a field changes its meaning; readers refuse other versions."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything inside a document: immutable, keyword only, no unknown fields.

    msgspec does not inherit `kw_only`, so that each subclass repeats it.
    """


class Module(Record, frozen=True, kw_only=True):
    """A file mapped into the program. `build_id` is hexadecimal, or empty where the file has none."""

    path: str
    build_id: str


class Frame(Record, frozen=True, kw_only=True):
    """One frame: where it is by address, and what that is in the source, where that is known.

    `offset` counts from the module's first byte in memory (its load base); for all but the innermost frame
    it is the return address. `inlined` frames share the address of the frame that follows them.
    """

    module: int
    offset: int
    function: str = ""
    file: str = ""
    line: int = 0
    inlined: bool = False
    python: bool = False
    """A Python function; it has no address."""


class PythonFrame(Record, frozen=True, kw_only=True):
    """A Python function under way, as recorded: at an `entry`, a native frame of the interpreter stands for it and the
    frames within it. Without a name, it is an entry alone."""

    function: str
    file: str
    line: int
    entry: bool


class Stack(Record, frozen=True, kw_only=True):
    """A call stack, innermost frame first. `key` is the same in every run: it hashes build-ids and offsets, and in
    Python files, functions and lines."""

    key: str
    frames: list[Frame]
    python: list[PythonFrame] = []
    """As long as they are not among the frames, the Python functions."""
    truncated: bool = False
    """Whether it may have been deeper than can be recorded, at its outer end."""


class ExitStatus(Record, frozen=True, kw_only=True):
    """How a program ended: an exit code, or the signal that ended it, or our own time limit."""

    code: int | None = None
    signal: str | None = None
    timed_out: bool = False


class ProcessRecord(Record, frozen=True, kw_only=True):
    """One process of a run that loaded a driver."""

    process_id: int
    executable: str
    rank: int | None
    """Rank under an MPI launcher, from its environment; None outside of one."""
    recording: str
    """File name of the raw recording, relative to the document."""
    threads: int
    operations: int
    lost: int
    """Operations that could not be recorded (disk full); 0 in a sound run."""
    python: str = ""
    """Version of the Python interpreter in it, as in `3.12.1`."""
    python_readable: bool = False
    """Whether its stacks hold Python functions."""
    ordinary_memory: bool = False
    """Whether a kernel was given what may be the address of ordinary memory: all counts as used from then on."""


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


class Run(Record, frozen=True, kw_only=True):
    """One measured execution of the program."""

    stage: str
    command: list[str]
    working_directory: str
    started: str
    """ISO 8601, UTC."""
    wall_s: float
    """From the start of the program to its end, without `preparation_s`."""
    preparation_s: float
    """For how long the run stood still since a process was held to be hooked: the first one where it uses the driver
    itself, else any of those that it launched (`ffm.instrument.held_times`)."""
    held_beside_s: float = 0.0
    """The part of `preparation_s` in which another process ran: `wall_s` is short by up to this where that one waited
    for nobody."""
    user_s: float
    system_s: float
    status: ExitStatus
    processes: list[ProcessRecord]
    hooks: list[HookOutcome]
    driver: Driver | None


class Document(Record, frozen=True, kw_only=True):
    """A file of results. Subclasses set `format`; `version` is checked on reading.

    `tables` are the fields that name columnar files, which lie beside the document.
    """

    format: ClassVar[str]
    tables: ClassVar[tuple[str, ...]] = ()
    version: int = FORMAT_VERSION
    runs: dict[str, str] = {}
    """Identity, by stage, of the run that it is of and of those that it was built on (`ffm.stages.identity`)."""
    run: Run | None = None
    modules: list[Module] = []
    stacks: list[Stack] = []


class WaitingCall(Record, frozen=True, kw_only=True):
    """A place that waited for the GPU in stage 1."""

    function: str
    """The public driver function around the wait; `private` where there is none."""
    stack: int
    count: int
    wait_s: float


class Baseline(Document, frozen=True, kw_only=True):
    """Stage 1 (dissertation 4.1): the bare wall time, and which driver functions wait, from where."""

    format: ClassVar[str] = "ffm.baseline"
    waits: list[WaitingCall]
    functions: list[str]
    """Public driver functions that waited, most time first."""


class WaitLatency(Record, frozen=True, kw_only=True):
    """What a wait for the GPU takes beyond the GPU's work, as this machine and driver have it."""

    least: int
    """Nanoseconds; nine of ten waits have more."""
    unknown: str = ""
    """Why it could not be measured, and is 0; else empty."""


NOT_MEASURED = WaitLatency(least=0, unknown="it was not measured")


class Tracing(Document, frozen=True, kw_only=True):
    """Stage 2 (dissertation 4.2): every operation. `events` names the columnar file (`ffm.instrument.events`)."""

    format: ClassVar[str] = "ffm.tracing"
    tables: ClassVar[tuple[str, ...]] = ("events", "host_memory")
    events: str
    probe_cost_ns: float
    """Measured cost of the probe itself for one traced call, already taken out of the columns."""
    host_memory: str
    """Columnar file of where pageable host memory of transfers comes from (`ffm.stages.host_memory`)."""
    compute_capability: int = 0
    """Of the first GPU, 10 * major + minor; 0 where it was not asked, since the program holds no device code."""
    wait_latency: WaitLatency = NOT_MEASURED


class Memory(Document, frozen=True, kw_only=True):
    """Stage 3 (dissertation 4.3): who used what each synchronization protects; what each transfer repeats.

    `synchronizations` and `transfers` name columnar files with a row for each operation of that kind.
    """

    format: ClassVar[str] = "ffm.memory"
    tables: ClassVar[tuple[str, ...]] = ("synchronizations", "transfers", "accesses", "downloads", "gpu_times")
    watch: str
    """How accesses were watched: `pages` or `trace`."""
    ordinary_memory: bool = True
    """Whether kernels may use ordinary memory by its address; not where the user says so."""
    synchronizations: str
    transfers: str
    accesses: str
    """Columnar file of the first accesses: the code addresses and ranges stage 4 instruments."""
    downloads: str
    """Columnar file with a row for each download that was followed to its end: `bytes`, and how many of them the CPU
    `touched` at most before they were overwritten or given back, which lie within `first` to `last`."""
    gpu_times: str
    """Columnar file of how long the GPU worked at what was enqueued, where events could tell."""


class SyncUse(Document, frozen=True, kw_only=True):
    """Stage 4 (dissertation 4.4): from the end of each required synchronization to the first use."""

    format: ClassVar[str] = "ffm.sync_use"
    tables: ClassVar[tuple[str, ...]] = ("first_uses",)
    first_uses: str


DocumentType = TypeVar("DocumentType", bound=Document)


def write_document(document: Document, path: Path) -> None:
    """Write a document as JSON, whole or not at all: a reader never sees half a file.

    Raises:
        OSError: the file cannot be written.
    """
    content = {"format": document.format, **msgspec.to_builtins(document)}
    encoded = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    write_whole(path, encoded)


def missing(path: Path, stage: str) -> DocumentError:
    """Say that the document of a stage does not exist."""
    return DocumentError(f"{path} does not exist. Run `ffm stage {stage}` first.")


def read_document(kind: type[DocumentType], path: Path) -> DocumentType:
    """Read and check a document of the given kind.

    Raises:
        DocumentError: missing, truncated, edited into another shape, of another kind or version; the message
            names the file and the command that makes it anew.
    """
    stage = kind.format.removeprefix("ffm.").replace("_", "-")
    again = f"Run `ffm stage {stage}` again to make it anew."
    try:
        content = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        raise missing(path, stage) from None
    except (orjson.JSONDecodeError, OSError) as error:
        raise DocumentError(f"{path} cannot be read ({error}): it is truncated or damaged. {again}") from error
    if not isinstance(content, dict) or content.pop("format", None) != kind.format:
        raise DocumentError(f"{path} is not a document of the format {kind.format}. {again}")
    if content.get("version") != FORMAT_VERSION:
        raise DocumentError(
            f"{path} has version {content.get('version')!r}; this ffm reads version {FORMAT_VERSION}. Measure the "
            "program anew, all stages: `snakemake --forceall --config app=./program`."
        )
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise DocumentError(f"{path} does not have the expected shape ({error}). {again}") from error
