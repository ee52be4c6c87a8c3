"""The places in the program's own code where samples of it were taken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from ffm.evidence.stack_table import UNKNOWN_MODULE
from ffm.instrument.recording.reader import Recording
from ffm.model.groups.names import base_name, starts_a_thread
from ffm.results.call_sites import foreign_modules, own_frames_outside, python_package, source_file
from ffm.results.documents.measured import SampledPlace
from ffm.results.documents.stacks import Frame, Module, PythonFrame, Stack
from ffm.symbols.named_stacks import name_stacks
from ffm.symbols.symbolizer import Symbolizer

_NO_KEY = "0" * 32


def sampled_places(recording: Recording) -> list[SampledPlace]:
    """Return the place of each of the recording's sampled stacks.

    That is the innermost line of the program's own source; without one, its innermost function; without that, the
    module of the code, or the Python package: a sample has the innermost frames only, and those of a package can be
    more.
    """
    modules = [Module(path=module.path, build_id=module.build_id) for module in recording.modules] + [UNKNOWN_MODULE]
    stacks = [
        Stack(
            key=_NO_KEY,
            frames=[
                Frame(module=len(modules) - 1 if module is None else module, offset=offset)
                for module, offset in stack.frames
            ],
            python=[
                PythonFrame(function=frame.function, file=frame.file, line=frame.line, entry=frame.entry)
                for frame in stack.python
            ],
            truncated=True,
        )
        for stack in recording.samples.stacks
    ]
    named = name_stacks(stacks, modules, Symbolizer(), interrupted=True)
    foreign = foreign_modules(named.modules)
    return [_place(stack.frames, named.modules, foreign) for stack in named.stacks]


def _place(frames: Sequence[Frame], modules: Sequence[Module], foreign: frozenset[int]) -> SampledPlace:
    own = own_frames_outside(frames, foreign)
    found = next((frame for frame in own if frame.line and frame.file), None)
    found = found or next((frame for frame in own if frame.function), None)
    if found is not None:
        return SampledPlace(function=base_name(found.function), file=source_file(found.file), line=found.line)
    inner = own or [frame for frame in frames if not starts_a_thread(frame.function)]
    if inner and inner[0].python:
        packages = (python_package(frame.file) for frame in inner if frame.python)
        module = next((package for package in packages if package), "Python")
    else:
        module = PurePath(modules[inner[0].module].path).name if inner else ""
    return SampledPlace(function=f"code in {module}" if module else "code in no file")
