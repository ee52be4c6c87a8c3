"""What a reader must know about how results were measured, as facts; `ffm.report.notes` puts them into words."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ffm.results.documents.fields import Count, Number, Record, Seconds, one_of
from ffm.results.vocabulary import OrdinaryCause


class Note(Record, frozen=True, kw_only=True, tag_field="about"):
    """Base of all notes; a file names which one it is."""


class UnusableModule(Note, frozen=True, kw_only=True, tag=True):
    """A file has no names for its functions. `problem` is the operating system's or the reader's own message."""

    problem: str


class OtherModule(Note, frozen=True, kw_only=True, tag=True):
    """A file is no longer the one that was measured. Build-ids are hexadecimal, or empty."""

    path: str
    build_id: str
    recorded: str


class UnidentifiedModule(Note, frozen=True, kw_only=True, tag=True):
    """Nothing shows whether a file is the one that was measured."""

    path: str


class FailedSymbolizer(Note, frozen=True, kw_only=True, tag=True):
    """llvm-symbolizer failed on a file, which ffm then read itself."""

    program: str
    path: str
    problem: str


class UnreadableLines(Note, frozen=True, kw_only=True, tag=True):
    """A file's debug information cannot be read."""

    path: str
    problem: str


class UnjoinedPython(Note, frozen=True, kw_only=True, tag=True):
    """In some call stacks, Python functions could not be joined with the native ones."""

    failed: Count
    stacks: Count


class UnreadPython(Note, frozen=True, kw_only=True, tag=True):
    """The functions of a version of Python cannot be read, as in `3.12.1`."""

    version: str


class UnrecordedProcesses(Note, frozen=True, kw_only=True, tag=True):
    """Processes of a run ended before they could record anything."""

    stage: str
    processes: Count


class UnfinishedCalls(Note, frozen=True, kw_only=True, tag=True):
    """Driver calls of a run that ffm ended had begun, and returned later."""

    stage: str
    calls: Count


class KilledProgram(Note, frozen=True, kw_only=True, tag=True):
    """The program did not end for this long when ffm asked it to, and was killed."""

    stage: str
    asked_s: Seconds


class OrdinaryMemory(Note, frozen=True, kw_only=True, tag=True):
    """A kernel received what may be the address of ordinary memory, which ended the watch; the first process's, if that
    was so in several."""

    kernel: str = ""
    """Empty if it is not known."""
    offset: Number = 0
    """Where that is, in bytes from the start of its parameters."""
    cause: OrdinaryCause | None = None


class HostFunctions(Note, frozen=True, kw_only=True, tag=True):
    """Streams call host functions: waiting for one of those needs no driver."""

    calls: Count


class BlockingLaunches(Note, frozen=True, kw_only=True, tag=True):
    """Each launch waited for its own work, as the environment asked."""


class CutStacks(Note, frozen=True, kw_only=True, tag=True):
    """Some operations are known by the inner frames of their stacks only."""

    operations: Count
    of: Count


class UnknownStacks(Note, frozen=True, kw_only=True, tag=True):
    """Some operations have no known stack."""

    operations: Count
    of: Count


class HeldBeside(Note, frozen=True, kw_only=True, tag=True):
    """Processes were held to be hooked while others ran."""

    wall_s: Seconds
    preparation_s: Seconds
    beside_s: Seconds


class CostlyTracing(Note, frozen=True, kw_only=True, tag=True):
    """Stage 2 took this many times as long as the program, perhaps compared only from the first wait to the last."""

    times: Annotated[float, msgspec.Meta(ge=0, le=1e9)]
    between_waits: bool


class UnknownLatency(Note, frozen=True, kw_only=True, tag=True):
    """How long a wait takes beyond the GPU's work could not be measured."""

    problem: str


class UnseenWaits(Note, frozen=True, kw_only=True, tag=True):
    """The driver's internal wait function is unknown."""

    problem: str


class UnhookedFunctions(Note, frozen=True, kw_only=True, tag=True):
    """Driver functions could not be hooked."""

    functions: list[str]


class LostOperations(Note, frozen=True, kw_only=True, tag=True):
    """Operations were not recorded because the disk was full."""

    operations: Count


class FirstLockWaits(Note, frozen=True, kw_only=True, tag=True):
    """Threads of a process waited for locks more often than is recorded, which are its first `waits`."""

    waits: Count


class LoadedCode(Note, frozen=True, kw_only=True, tag=True):
    """The program spent this long loading device code."""

    seconds: Seconds
    wall_s: Seconds


class CompiledCode(Note, frozen=True, kw_only=True, tag=True):
    """The driver compiled device code of some files for this GPU. Compute capabilities are 10 * major + minor."""

    files: list[str]
    seconds: Seconds
    wall_s: Seconds
    machine: list[Number]
    """Architectures for which the files hold machine code; empty if they hold PTX alone."""
    capability: Number


class UnlistedSequences(Note, frozen=True, kw_only=True, tag=True):
    """More sequences were found than are listed."""

    found: Count
    listed: Count


class SeveralProcesses(Note, frozen=True, kw_only=True, tag=True):
    """More than one process called the driver."""

    processes: Count


class Profiled(Note, frozen=True, kw_only=True, tag=True):
    """The GPU's times are those of another tool."""

    profiler: str


class NoStacks(Note, frozen=True, kw_only=True, tag=True):
    """An imported trace has no call stacks at all."""


class NoLines(Note, frozen=True, kw_only=True, tag=True):
    """An imported trace lacks the stacks that name lines of the program. `profiler` is the origin of the results."""

    profiler: Annotated[str, one_of("nsys", "pytorch", "otf2")]


class UnlaunchedWork(Note, frozen=True, kw_only=True, tag=True):
    """Pieces of the GPU's work belong to no recorded call."""

    pieces: Count


class AmbiguousWork(Note, frozen=True, kw_only=True, tag=True):
    """Pieces of the GPU's work could be of several processes."""

    pieces: Count


class PairedWork(Note, frozen=True, kw_only=True, tag=True):
    """A trace does not tie the GPU's work to calls; both are paired in order of time."""


class UnpairedCalls(Note, frozen=True, kw_only=True, tag=True):
    """Launches and copies have no record of the GPU's work."""

    calls: Count


class LostEvents(Note, frozen=True, kw_only=True, tag=True):
    """Events of an archive are lost."""

    events: Count


class TotalsOnly(Note, frozen=True, kw_only=True, tag=True):
    """Diogenes kept totals for each call stack, but no trace."""


class DiogenesSequences(Note, frozen=True, kw_only=True, tag=True):
    """Sequences are those of Diogenes, with what it left out."""


AnyNote = (
    UnusableModule
    | OtherModule
    | UnidentifiedModule
    | FailedSymbolizer
    | UnreadableLines
    | UnjoinedPython
    | UnreadPython
    | UnrecordedProcesses
    | UnfinishedCalls
    | KilledProgram
    | OrdinaryMemory
    | HostFunctions
    | BlockingLaunches
    | CutStacks
    | UnknownStacks
    | HeldBeside
    | CostlyTracing
    | UnknownLatency
    | UnseenWaits
    | UnhookedFunctions
    | LostOperations
    | FirstLockWaits
    | LoadedCode
    | CompiledCode
    | UnlistedSequences
    | SeveralProcesses
    | Profiled
    | NoStacks
    | NoLines
    | UnlaunchedWork
    | AmbiguousWork
    | PairedWork
    | UnpairedCalls
    | LostEvents
    | TotalsOnly
    | DiogenesSequences
)
"""As read from a file."""
