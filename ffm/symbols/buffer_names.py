"""What the program calls the memory of its allocations, frees and transfers (dissertation, chapter 6)."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ffm.driver.catalogue import load_catalogue
from ffm.driver.vocabulary import Direction
from ffm.results.documents.stacks import Frame, Module, Stack
from ffm.symbols.argument_names import ArgumentNames
from ffm.symbols.elf import read_elf

_ENTRY = re.compile(r"cu(?:da)?[A-Z]\w*")
_FLAVOUR = re.compile(r"(_v\d+|_pt[sd][sz])+$")
_FILLS = re.compile(r"cudaMalloc\w*|cudaHostAlloc|cuMemAlloc\w*|cuMemHostAlloc")
"""Allocations: their first argument is the address of the variable that receives the memory's address."""
_HOLDS = re.compile(
    r"cudaFree\w*|cuMemFree\w*|cudaHost(Unr|R)egister|cuMemHost(Unr|R)egister|cudaMemset\w*|cuMemset\w*"
)
"""Their first argument is the memory."""
_COPIES = re.compile(r"cudaMemcpy(?P<two>2D)?(Async)?|cuMemcpy(HtoD|DtoH)(Async)?")


@functools.lru_cache(maxsize=1 << 16)  # stacks have most of their functions in common
def _is_entry(function: str) -> bool:
    return _ENTRY.fullmatch(function) is not None


class BufferNames:
    """Names the memory of calls by their stacks. Modules whose file is not the measured one yield no names."""

    def __init__(self, stacks: Sequence[Stack], modules: Sequence[Module]) -> None:
        self._stacks, self._modules = stacks, modules
        self._opened: dict[int, tuple[ArgumentNames, int] | None] = {}

    def names(self, calls: Iterable[tuple[int, str]]) -> dict[int, str]:
        """Return the names of the memory of calls, by stack; each call is a stack and its driver function. For an
        allocation this is what it fills, for a free what it frees, for a transfer the host memory. Unknown names are
        left out.
        """
        named = {stack: self._name(self._stacks[stack].frames, function) for stack, function in set(calls)}
        return {stack: name for stack, name in named.items() if name}

    def _name(self, frames: Sequence[Frame], function: str) -> str:
        entry = next((index for index in range(len(frames) - 1, -1, -1) if _is_entry(frames[index].function)), None)
        call = _FLAVOUR.sub("", function if entry is None else frames[entry].function)
        caller = 0 if entry is None else entry + 1
        while caller < len(frames) and _ENTRY.match(frames[caller].function):  # cudaMalloc<Type>, of cuda_runtime.h
            caller += 1
        if caller >= len(frames) or frames[caller].python:
            return ""
        frame = frames[caller]
        module = self._open(frame.module)
        if module is None:
            return ""
        names, base = module
        address = base + frame.offset
        if _FILLS.fullmatch(call):
            name = names.pointed_to(address, 0, frame.line)
            # What is known by a pointer alone is a parameter of the inlined template: `*devPtr`.
            return "" if name.startswith("*") and frames[caller - 1].inlined else name
        if _HOLDS.fullmatch(call):
            return names.passed(address, 0, frame.line).removeprefix("&")
        copy = _COPIES.fullmatch(call)
        if copy is None or function not in load_catalogue():
            return ""
        direction = load_catalogue()[function].direction
        source = 2 if copy["two"] else 1
        place = {Direction.HOST_TO_DEVICE: source, Direction.DEVICE_TO_HOST: 0}.get(direction)
        return "" if place is None else names.passed(address, place, frame.line).removeprefix("&")

    def _open(self, module: int) -> tuple[ArgumentNames, int] | None:
        """Return the names of a module, and the link-time address of its offset 0; None without its file."""
        if module not in self._opened:
            path = Path(self._modules[module].path)
            try:
                file = read_elf(path)
                same = file.build_id == self._modules[module].build_id
                self._opened[module] = (ArgumentNames(path), file.base) if same else None
            except (OSError, ValueError):
                self._opened[module] = None
        return self._opened[module]
