"""Call stacks with functions, files and lines; in a Python program, with its Python functions in their places."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import msgspec

from ffm.evidence.stack_table import UNKNOWN_MODULE
from ffm.instrument.library import COLLECTOR
from ffm.results.documents.notes import AnyNote, UnjoinedPython, UnreadPython
from ffm.results.documents.run import Run
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.results.memory.collecting import uncollected
from ffm.symbols.elf import read_elf
from ffm.symbols.fragments import split_parts
from ffm.symbols.locations import Location, SourceFrame
from ffm.symbols.python_frames import EVALUATION, Native, cython_name, join
from ffm.symbols.symbolizer import Symbolizer

_INTERPRETER = re.compile(r"(lib)?python\d[\w.]*")
"""The interpreter's own module; a program with Python linked in does not match."""

_CALLING_AID = re.compile(r"(_ctypes|_cffi_backend)\..*so|libffi([-.].*)?\.so.*")
"""Modules that only forward a Python call to a C function."""


@dataclass(slots=True)
class NamedStacks:
    """Stacks whose frames have names where known. `modules` are the given ones, and perhaps one more."""

    stacks: list[Stack]
    modules: list[Module]
    notes: list[AnyNote] = field(default_factory=list)
    """What could not be named or joined."""


@uncollected()
def name_stacks(
    stacks: list[Stack], modules: list[Module], symbolizer: Symbolizer, *, interrupted: bool = False
) -> NamedStacks:
    """Name all frames except our own. Inlined functions become separate frames; Python functions replace the
    interpreter's.

    In `interrupted` stacks the innermost address is not that of a call: it is where the program was executing.
    """
    innermost = {id(stack.frames[0]): stack.frames[0] for stack in stacks if stack.frames}
    outer: dict[int, Frame] = {}  # stacks have most of their frames in common, as the same objects
    for stack in stacks:
        frames = stack.frames[1:]
        outer.update(zip(map(id, frames), frames, strict=True))
    locations = [
        Location(module.path, module.build_id, frame.offset, calls or (not interrupted and _outside_driver(module)))
        for calls, frames_of in ((False, innermost), (True, outer))
        for frame in frames_of.values()
        if (module := modules[frame.module]).path  # code generated at run time is in no file
    ]
    resolved = iter(symbolizer.resolve(locations))
    inside, outside = (
        {place: _named(frame, next(resolved) if modules[frame.module].path else []) for place, frame in each.items()}
        for each in (innermost, outer)
    )
    joiner = _Joiner(modules)
    named = [
        joiner.join(
            stack,
            [*(inside[id(frame)] for frame in stack.frames[:1]), *(outside[id(frame)] for frame in stack.frames[1:])],
        )
        for stack in stacks
    ]
    # If the driver allocates host memory inside a traced call, frames of ours are in between.
    ours = {number for number, module in enumerate(modules) if PurePath(module.path).name == COLLECTOR}
    if ours:
        named = [
            msgspec.structs.replace(stack, frames=[frame for frame in stack.frames if frame.module not in ours])
            for stack in named
        ]
    return NamedStacks(named, joiner.modules, [*symbolizer.notes, *joiner.notes])


def _outside_driver(module: Module) -> bool:
    """Return whether an innermost frame in a module is a call of the driver.

    The stack of a traced call starts with the return address into its caller. Only that of a wait, or of a function
    that could not be replaced, starts with the driver's own function, which is about to be entered.
    """
    return not PurePath(module.path).name.startswith("libcuda.so")


def unread_python(run: Run | None) -> list[AnyNote]:
    """Return a note for each Python interpreter of a run whose functions could not be read."""
    processes = run.processes if run else []
    versions = {process.python for process in processes if process.python and not process.python_readable}
    return [UnreadPython(version=version) for version in sorted(versions)]


def _named(frame: Frame, sources: list[SourceFrame]) -> list[Frame]:
    """Return the functions at one address, innermost inlined one first."""
    return [
        Frame(
            module=frame.module,
            offset=frame.offset,
            function=cython_name(source.function),
            file=source.file,
            line=source.line,
            inlined=place + 1 < len(sources),
        )
        for place, source in enumerate(sources)
    ] or [frame]


class _Joiner:
    """Joins native and Python frames, and counts the stacks for which that failed."""

    def __init__(self, modules: list[Module]) -> None:
        self.modules = list(modules)
        names = [PurePath(module.path).name for module in modules]
        self._interpreters = {number for number, name in enumerate(names) if _INTERPRETER.fullmatch(name)}
        self._aids = {number for number, name in enumerate(names) if _CALLING_AID.fullmatch(name)}
        self._evaluation: dict[int, list[range]] = {}
        self._tried = 0
        self._failed = 0

    @property
    def notes(self) -> list[AnyNote]:
        if not self._failed:
            return []
        return [UnjoinedPython(failed=self._failed, stacks=self._tried)]

    def join(self, stack: Stack, native: list[list[Frame]]) -> Stack:
        """Return the stack with one list of frames. `native` contains the functions at each of its addresses."""
        if not stack.python:
            return Stack(key=stack.key, frames=[frame for group in native for frame in group])
        self._tried += 1
        functions = [self._function(group[-1], depth > 0) for depth, group in enumerate(native)]
        order = join(functions, [frame.entry for frame in stack.python], complete=not stack.truncated)
        python = [self._frame(stack, index) for index in range(len(stack.python))]
        frames: list[Frame] = []
        if order is None:
            self._failed += 1
            frames = [frame for group in native for frame in group] + [frame for frame in python if frame.function]
        else:
            for place in order:
                if not isinstance(place, Native):
                    frames += [python[place.index]] if python[place.index].function else []
                elif not self._is_noise(native[place.index][-1]):
                    frames += native[place.index]
        return Stack(key=stack.key, frames=frames)

    def _is_noise(self, frame: Frame) -> bool:
        """Return whether a native frame next to Python ones adds nothing to them."""
        return frame.module in self._interpreters or frame.module in self._aids

    def _function(self, frame: Frame, return_address: bool) -> str:
        """Return the function of a native frame. Without a name, it may be part of the evaluation function."""
        if frame.function:
            return frame.function
        if frame.module not in self._evaluation:
            self._evaluation[frame.module] = _evaluation_parts(self.modules[frame.module])
        address = frame.offset - return_address
        return EVALUATION if any(address in part for part in self._evaluation[frame.module]) else ""

    def _frame(self, stack: Stack, index: int) -> Frame:
        python = stack.python[index]
        return Frame(
            module=self._no_module(),
            offset=0,
            function=python.function,
            file=python.file,
            line=python.line,
            python=True,
        )

    def _no_module(self) -> int:
        if UNKNOWN_MODULE not in self.modules:
            self.modules.append(UNKNOWN_MODULE)
        return self.modules.index(UNKNOWN_MODULE)


def _evaluation_parts(module: Module) -> list[range]:
    """Return where in a module the interpreter's evaluation function is, as offsets; nowhere in most modules."""
    try:
        file = read_elf(Path(module.path))
        parts = split_parts(file.path, EVALUATION) if file.build_id == module.build_id else []
    except (OSError, ValueError):
        return []
    return [range(part.start - file.base, part.stop - file.base) for part in parts]
