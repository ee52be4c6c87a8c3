"""Notes on the measurement, in words."""

from __future__ import annotations

from pathlib import PurePath

from ffm.report.names import shorten
from ffm.results.call_sites import foreign_modules, own_frames_outside
from ffm.results.documents import notes
from ffm.results.documents.analysis import Analysis
from ffm.results.documents.notes import (
    CompiledCode,
    CostlyTracing,
    LoadedCode,
    NoLines,
    Note,
    OrdinaryMemory,
    OtherModule,
    UnhookedFunctions,
)
from ffm.results.vocabulary import OrdinaryCause

MOST_FUNCTIONS = 5
"""Functions that a note names."""

WORDS: dict[type[Note], str] = {
    notes.UnusableModule: "{note.problem}, so its functions have no names.",
    notes.UnidentifiedModule: "{note.path} has no build-id, so nothing shows whether it is the file that was measured.",
    notes.FailedSymbolizer: "{note.program} failed on {note.path} ({note.problem}), so ffm read that file with its "
    "own reader.",
    notes.UnreadableLines: "The debug information of {note.path} cannot be read ({note.problem}), so its functions "
    "come from its symbol table, without files and lines.",
    notes.UnjoinedPython: "In {note.failed} of {note.stacks} call stacks with Python functions, these could not be "
    "joined with the native ones: they are listed after them.",
    notes.UnreadPython: "The program runs in Python {note.version}, whose functions cannot be read: its stacks show "
    "the interpreter's own functions. CPython 3.11 to 3.15 can be read, in builds with the global interpreter lock.",
    notes.UnrecordedProcesses: "Processes that ended in the {note.stage} run before their recording began, and so "
    "before they could call the driver: {note.processes:,}. The results leave them out.",
    notes.UnfinishedCalls: "In the {note.stage} run, driver calls that were still running when the recording ended: "
    "{note.calls:,}. The results leave them out.",
    notes.KilledProgram: "In the {note.stage} run, the program was asked to end (SIGTERM), did not within "
    "{note.asked_s:g} s, and was killed.",
    notes.HostFunctions: "Streams call host functions ({note.calls:,} were enqueued). If the program waits for one of "
    "them with its own lock, as XLA does for JAX, that is not a driver call: such waits are not observed.",
    notes.BlockingLaunches: "The program ran with CUDA_LAUNCH_BLOCKING, so that each launch waited for its kernel. "
    "Without it, the program waits elsewhere: unset it, and measure again.",
    notes.CutStacks: "For {note.operations:,} of {note.of:,} operations only the inner frames of the call stack are "
    "known, because it was too deep or the program has too many different ones: operations with the same inner frames "
    "count as one place.",
    notes.UnknownStacks: "{note.operations:,} of {note.of:,} operations have no known call stack and count as one "
    "place, because the program has more than a million different ones, or because theirs could not be read.",
    notes.HeldBeside: "The run's {note.wall_s:.2f} s exclude {note.preparation_s:.2f} s in which processes were held "
    "to be hooked. In {note.beside_s:.2f} s of these, other processes were free: if they did not wait for the held "
    "ones, the run took up to that much longer.",
    notes.UnknownLatency: "How much longer a wait takes than the GPU's work could not be measured on this machine "
    "({note.problem}): unless events timed the GPU, the whole wait counts as its work, and removing the wait seems to "
    "save less than it does.",
    notes.UnseenWaits: "The driver's internal wait function is unknown ({note.problem}). So only synchronizations are "
    "judged, and calls that CUDA documents to wait, such as cudaFree and cudaMemcpy, are taken to wait for as long as "
    "they last. `ffm doctor` searches for the function again.",
    notes.LostOperations: "{note.operations} operations were not recorded because the disk was full.",
    notes.FirstLockWaits: "Threads waited for locks and the like more often than ffm records: only the first "
    "{note.waits:,} waits of each process. Later ones count as CPU work.",
    notes.UnlistedSequences: "{note.found} different sequences were found; the {note.listed} that save the most are "
    "listed.",
    notes.SeveralProcesses: "{note.processes} processes were recorded. Counts and times of sites are sums over them. "
    "A saving is that of the run: of processes that run the same code, the last to end counts.",
    notes.Profiled: "Recorded by {note.profiler}: all times are the profiler's, and the run's time includes the "
    "profiler's own.",
    notes.NoStacks: "The trace has no call stacks, so a call is identified by the kernel that its thread launched "
    "last.",
    notes.UnlaunchedWork: "{note.pieces:,} pieces of the GPU's work belong to no recorded call. Only waits for them "
    "are shown.",
    notes.AmbiguousWork: "{note.pieces:,} pieces of the GPU's work could belong to several processes in the same file, "
    "and are left out: import the file of each process.",
    notes.PairedWork: "The trace does not tie the GPU's work to calls. Kernels are paired with the launches on their "
    "stream in order of time, copies with the calls of their direction. Asynchronous copies are taken to use pinned "
    "memory.",
    notes.UnpairedCalls: "{note.calls:,} launches and copies have no record of the GPU's work, so some of it may be "
    "paired with a neighbouring call.",
    notes.LostEvents: "{note.events:,} events of the archive are lost, and near them the causes of waits may be wrong. "
    "Record with more memory for events (`SCOREP_TOTAL_MEMORY`).",
    notes.TotalsOnly: "Imported from Diogenes, which kept totals for each call stack but no trace: each operation "
    "represents all executions of its stack, carry treats them as one, and transfers count as repeated by their "
    "content alone.",
    notes.DiogenesSequences: "Sequences contain the operations that Diogenes put into them; because of an indexing "
    "error it omitted the first operation of each loop and the one after each needed synchronization.",
}

NO_LINES = {
    "nsys": "Record with `nsys profile --cudabacktrace=all` to see lines of the program.",
    "pytorch": "The trace has no Python stacks. Record it with `with_stack=True` to see lines of the program.",
    "otf2": "Score-P was told to record no functions of the program. Compile it with `scorep`, or mark regions.",
}
"""By the origin of the results."""


def sentence(note: Note) -> str:
    """Return a note in words."""
    match note:
        case OtherModule(path=path, build_id=build_id, recorded=recorded):
            return (
                f"{path} is not the file that was measured (build-id {build_id or 'none'}, recorded "
                f"{recorded or 'none'}), so its functions have no names."
            )
        case UnhookedFunctions(functions=functions):
            named = ", ".join(functions[:MOST_FUNCTIONS])
            return f"{len(functions)} driver functions could not be hooked: {named}."
        case CostlyTracing(times=times, between_waits=between):
            part = " from its first waits to the last" if between else ""
            return (
                f"Stage 2 took {times:.1f} times the program's time{part}. What the probes took is subtracted, but "
                "they also disturb caches and other threads: the intervals of all estimates are wider."
            )
        case OrdinaryMemory():
            return _ordinary_memory(note)
        case LoadedCode():
            return f"Loading device code took {_share(note)}."
        case CompiledCode():
            return _compiled(note)
        case NoLines(profiler=profiler):
            return NO_LINES[profiler]
    return WORDS[type(note)].format(note=note)


def unknown_lines(analysis: Analysis) -> str:
    """Return what to do if no line of a measured program is known, because it has no debug information; else nothing.

    Stacks of other tools have notes of their own (`NO_LINES`).
    """
    if analysis.origin not in ("ffm", "quick"):
        return ""
    foreign = foreign_modules(analysis.modules)
    own = [frame for stack in analysis.stacks for frame in own_frames_outside(stack.frames, foreign)]
    if not own or any(frame.line for frame in own):
        return ""
    modules = dict.fromkeys(frame.module for frame in own if not frame.python and frame.module < len(analysis.modules))
    names = [PurePath(path).name for number in modules if (path := analysis.modules[number].path)]
    if not names:
        return ""
    return (
        f"No source lines are known, because {' and '.join(names)} {'has' if len(names) == 1 else 'have'} no debug "
        "information: compile the host code with -g, do not strip it, and measure again to see lines and variables."
    )


_MOST_OF_NAME = 100
"""Characters of a kernel's name, which templates make long."""


def _ordinary_memory(note: OrdinaryMemory) -> str:
    kernel = f"The kernel {shorten(note.kernel, _MOST_OF_NAME)}" if note.kernel else "A kernel"
    place = f", {note.offset} bytes from the start of its parameters"
    why = {
        OrdinaryCause.USES: f"{place}: its machine code may use it as an address",
        OrdinaryCause.NO_CODE: f"{place}, and ffm does not know its machine code",
        OrdinaryCause.ANYTHING: ", since its parameters are not known",
        OrdinaryCause.GRAPH: ", in a graph",
        None: "",
    }[note.cause]
    return (
        f"{kernel} received what may be the address of ordinary host memory, which this GPU can use{why}. From then on "
        "every wait counts as required. The value may also be a stale pointer in struct padding. If the program's "
        "kernels use only device, pinned and managed memory, run `ffm stage memory` with --no-ordinary-memory, then "
        "sync-use and analysis."
    )


def _share(note: LoadedCode | CompiledCode) -> str:
    share = f", {100 * note.seconds / note.wall_s:.0f} % of the run" if note.wall_s > 0 else ""
    return f"{note.seconds:.2f} s{share}"


def _compiled(note: CompiledCode) -> str:
    architectures = ", ".join(f"sm_{architecture}" for architecture in note.machine)
    holds = f"machine code for {architectures} only" if note.machine else "PTX only"
    return (
        f"The driver compiles device code of {', '.join(note.files)} when it is loaded, which took {_share(note)} in "
        f"stage 2 (the driver caches the result, by default in ~/.nv/ComputeCache). It contains {holds}, but this GPU "
        f"is sm_{note.capability}: build it with `nvcc -arch=sm_{note.capability}`, or add "
        f"`-gencode arch=compute_{note.capability},code=sm_{note.capability}`."
    )
