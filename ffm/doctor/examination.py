"""What a driver and this machine allow: every function is actually hooked, in a child process that loads the driver."""

from __future__ import annotations

import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import msgspec

from ffm.driver.analysis import identity_of
from ffm.driver.catalogue import Catalogue, load_catalogue
from ffm.driver.library import DriverFileError, read_library
from ffm.driver.versions import form_of
from ffm.driver.vocabulary import Kind
from ffm.errors import ConfinedError
from ffm.instrument.recording.reader import read_recordings
from ffm.instrument.session.instruments import Instruments
from ffm.instrument.session.runner import run_instrumented

VERSIONS = (
    *(2000, 3020, 4000, 5050, 6050, 7000, 8000, 9000, 9020, 10000, 10010, 10020, 11000, 11010, 11020, 11030, 11040),
    *(11060, 11070, 11080, 12000, 12010, 12020, 12030, 12040, 12050, 12060, 12080, 12090, 13000, 13010, 13020),
)
"""CUDA versions that introduced new forms of functions (cudaTypedefs.h), for queries to `cuGetProcAddress`."""

SECONDS = 60.0
"""More than an examination takes."""

LOST = {
    Kind.SYNCHRONIZATION: "its waits are observed, but not the call that requested them",
    Kind.TRANSFER: "its copies, and what waits for them, are not observed",
    Kind.SET: "the device memory that it writes is unknown",
    Kind.FREE: "its hidden waits for the GPU have no call site",
    Kind.ALLOCATION: "remedies cannot name the origin of its memory",
    Kind.LAUNCH: "work that it starts is not observed, so waits for it look unnecessary",
    Kind.HOST_FUNCTION: "what its functions access is not observed",
    Kind.MIGRATION: "prefetched managed memory is unknown",
    Kind.MAPPING: "a second address of the same memory is unknown",
    Kind.SHARING: "other processes that use the same device memory are unknown",
    Kind.VIEW: "memory that kernels reach by a texture or a tensor map is unknown",
    Kind.RELEASE: "a wait for work that uses the object looks unnecessary",
    Kind.QUERY: "polling with it is not recognized as a synchronization",
    Kind.TIMING: "a wait that serves a time measurement looks unnecessary",
    Kind.ORDER: "a wait that orders two streams looks unnecessary",
    Kind.GRAPH: "work of graphs that it creates is not observed",
    Kind.STREAM: "which streams exist, and how they wait for each other, is unknown",
    Kind.EVENT: "what its events stand for is unknown",
    Kind.CONTEXT: "which context a thread works in is unknown",
    Kind.MODULE: "loading of device code, and waits during it, are not observed",
    Kind.ENTRY: "which entry points the program requests is unknown",
}
"""What a measurement loses if a kind of function cannot be hooked."""

ESSENTIAL = frozenset({Kind.SYNCHRONIZATION, Kind.TRANSFER, Kind.FREE, Kind.ALLOCATION, Kind.LAUNCH})
"""If any function of these kinds is not hooked, verdicts can be wrong."""

HOOKED = frozenset({"replace-fast", "attach", "shared", "inherited"})


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """How one exported function of the catalogue was hooked."""

    function: str
    kind: str
    how: str
    """`replace-fast`, `attach`, `shared` (with the function in `reason`), or `failed`."""
    reason: str
    lost: str
    """What a measurement loses; empty if it is hooked."""
    essential: bool


class EntryPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One answer of `cuGetProcAddress`."""

    asked: str
    version: int
    """The lowest CUDA version requested that yields this pointer, 1000 * major + 10 * minor."""
    per_thread: bool
    """Whether the variant with one default stream per thread was requested."""
    exports: tuple[str, ...]
    """Exported names of this address; empty if it is not exported."""
    offset: int


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What a driver is, and the outcome of hooking it."""

    path: str
    identity: str
    """Build-id, or a hash of the file."""
    release: str
    """NVIDIA's number of the driver, such as `580.95.05`; empty if the file's name does not show it."""
    cuda_version: int
    """What `cuDriverGetVersion` returns: 1000 * major + 10 * minor."""
    initialised: int
    """What `cuInit` returns: 0, or an error such as 100 (no device)."""
    initialisation_error: str
    device: str
    """Name of the first device; empty if there is none."""
    compute_capability: tuple[int, int] | None
    hooks: tuple[Hook, ...]
    entry_points: tuple[EntryPoint, ...]
    unknown_exports: tuple[str, ...]
    """Exported functions that the catalogue neither watches nor deliberately leaves out."""
    unknown_entry_points: tuple[EntryPoint, ...]
    """Answers of `cuGetProcAddress` that are likewise unknown, or that are neither exported nor hooked."""
    recorded: int
    """Calls of the examined process that the collector recorded."""

    def by_outcome(self) -> dict[str, list[Hook]]:
        """Return the hooks by outcome."""
        groups: dict[str, list[Hook]] = defaultdict(list)
        for hook in self.hooks:
            groups[hook.how].append(hook)
        return dict(groups)

    @property
    def unhooked(self) -> tuple[Hook, ...]:
        """Functions that could not be hooked."""
        return tuple(hook for hook in self.hooks if hook.how not in HOOKED)


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What `ffm.doctor.subject` writes."""

    error: str = ""
    path: str = ""
    version: int = 0
    initialised: int = 0
    meaning: str = ""
    device: str = ""
    capability: tuple[int, int] | None = None
    entry_points: tuple[tuple[str, int, int, int], ...] = ()


class _NoWait:
    """The examination needs no wait function, so it hooks none."""

    offsets: tuple[int, ...] = ()


def try_attaching() -> None:
    """Start a child process with the instruments in place but no driver. Raises `ConfinedError`."""
    with tempfile.TemporaryDirectory(prefix="ffm-examination-") as scratch:
        output = Path(scratch) / "output"
        instruments = Instruments(Path(scratch), [], 0, None, lambda _driver: _NoWait())
        outcome = run_instrumented([sys.executable, "-c", ""], instruments, output=output, timeout_s=SECONDS)
        if not outcome.ending.sound:
            raise ConfinedError(f"A child process with the instruments in place {outcome.ending}.")


def examine_driver(library: str) -> Examination:
    """Load `library` (a path, or a name for the dynamic linker) in a child process with all functions hooked.

    Raises:
        ConfinedError: Nothing can attach to a child, or the child ended early.
        DriverFileError: The file is not a driver, or cannot be loaded.
    """
    catalogue = load_catalogue()
    with tempfile.TemporaryDirectory(prefix="ffm-examination-") as scratch:
        folder = Path(scratch)
        recordings = folder / "recordings"
        recordings.mkdir()
        order, answer_file, output = folder / "order.json", folder / "answer.json", folder / "output"
        names = sorted(names_to_ask_for(library, catalogue))
        order.write_bytes(msgspec.json.encode({"library": library, "names": names, "versions": VERSIONS}))
        outcome = run_instrumented(
            [sys.executable, "-m", "ffm.doctor.subject", str(order), str(answer_file)],
            Instruments(
                recordings, [function.name for function in catalogue.functions], 0, None, lambda _driver: _NoWait()
            ),
            output=output,
            timeout_s=SECONDS,
        )
        if not answer_file.exists():
            said = output.read_text(errors="replace").strip().splitlines()
            raise ConfinedError(
                f"The process that loads {library} with all hooks in place {outcome.ending}"
                + (f" ({said[-1]})." if said else ".")
            )
        answer = msgspec.json.decode(answer_file.read_bytes(), type=Answer)
        if answer.error:
            raise DriverFileError(f"{answer.error[0].upper()}{answer.error[1:]}.")
        process = outcome.processes[0] if outcome.processes else None
        if process is None or process.failure:
            raise ConfinedError(
                f"The driver {answer.path} was loaded, and no hooks were made"
                + (f": {process.failure}." if process else ".")
            )
        recorded = sum(len(recording.operations) for recording in read_recordings(recordings))
    return _examination(answer, process.hooks, recorded, catalogue)


def names_to_ask_for(library: str, catalogue: Catalogue) -> set[str]:
    """Return all names that `cuGetProcAddress` may know: the catalogue's, and strings in the file that look like it."""
    names = {function.base for function in catalogue.functions} | catalogue.left_out
    path = Path(library)
    if "/" in library and path.is_file():
        names |= {match.decode() for match in re.findall(rb"(?<=\0)cu[A-Z]\w{2,60}(?=\0)", path.read_bytes())}
    return names


def _examination(answer: Answer, hooks: list[tuple[str, str, str]], recorded: int, catalogue: Catalogue) -> Examination:
    path = Path(answer.path)
    library = read_library(path)
    names: dict[int, list[str]] = defaultdict(list)
    for name, offset in library.exports.items():
        names[offset].append(name)
    entry_points = tuple(
        EntryPoint(
            asked=asked,
            version=version,
            per_thread=flags == 2,
            exports=tuple(sorted(names.get(offset, ()))),
            offset=offset,
        )
        for asked, version, flags, offset in answer.entry_points
    )
    release = re.search(r"\.so\.(\d+\.\d+(\.\d+)?)$", str(path.resolve()))
    return Examination(
        path=answer.path,
        identity=identity_of(library),
        release=release[1] if release else "",
        cuda_version=answer.version,
        initialised=answer.initialised,
        initialisation_error=answer.meaning.strip(" ()"),
        device=answer.device,
        compute_capability=answer.capability,
        hooks=tuple(_hook(name, how, reason, catalogue) for name, how, reason in hooks),
        entry_points=entry_points,
        unknown_exports=tuple(sorted(name for name in library.exports if _unknown(name, catalogue))),
        unknown_entry_points=tuple(
            point
            for point in entry_points
            if (all(_unknown(name, catalogue) for name in point.exports) if point.exports else _unhooked(point, hooks))
        ),
        recorded=recorded,
    )


def _unhooked(point: EntryPoint, hooks: list[tuple[str, str, str]]) -> bool:
    """Return whether an answer that is not exported was also not hooked as a form of its function."""
    form = form_of(point.asked, point.version, per_thread=point.per_thread)
    return form is None or not any(name == form.name and how in HOOKED for name, how, _ in hooks)


def _unknown(name: str, catalogue: Catalogue) -> bool:
    return bool(re.match("cu[A-Z]", name)) and name not in catalogue and name not in catalogue.left_out


def _hook(name: str, how: str, reason: str, catalogue: Catalogue) -> Hook:
    kind = catalogue[name].kind
    return Hook(
        function=name,
        kind=str(kind),
        how=how,
        reason=reason,
        lost="" if how in HOOKED else LOST[kind],
        essential=kind in ESSENTIAL,
    )
