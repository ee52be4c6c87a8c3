"""Merges the stacks and modules of several processes into the tables of one document."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ffm.instrument.recording.reader import Recording
from ffm.results.documents.stacks import Frame, Module, PythonFrame, Stack
from ffm.results.memory.collecting import uncollected

UNKNOWN_MODULE = Module(path="", build_id="")
"""Placeholder for addresses outside every mapped file, such as code generated at run time."""


class StackTable:
    """Distinct stacks by key, in order of first appearance, and the modules that their frames refer to."""

    def __init__(self) -> None:
        self.modules: list[Module] = []
        self.stacks: list[Stack] = []
        self._module_numbers: dict[Module, int] = {}
        self._stack_numbers: dict[str, int] = {}

    @uncollected()
    def add(self, recording: Recording) -> NDArray[np.int32]:
        """Add a process's stacks; return, for each of its stack numbers, the number in this table."""
        modules = [self._module(Module(path=module.path, build_id=module.build_id)) for module in recording.modules]
        recorded = recording.stacks
        numbers = np.empty(len(recorded), np.int32)
        frames = [
            Frame(module=self._module(UNKNOWN_MODULE) if module is None else modules[module], offset=offset)
            for module, offset in recorded.places
        ]
        for index, key in enumerate(recorded.keys):
            number = self._stack_numbers.get(key)
            if number is None:
                number = self._stack_numbers[key] = len(self.stacks)
                self.stacks.append(
                    Stack(
                        key=key,
                        frames=[frames[place] for place in recorded.frames(index)],
                        python=[
                            PythonFrame(function=place.function, file=place.file, line=place.line, entry=place.entry)
                            for place in recorded.python(index)
                        ],
                        truncated=recorded.is_truncated(index),
                    )
                )
            numbers[index] = number
        return numbers

    def _module(self, module: Module) -> int:
        number = self._module_numbers.get(module)
        if number is None:
            number = self._module_numbers[module] = len(self.modules)
            self.modules.append(module)
        return number
