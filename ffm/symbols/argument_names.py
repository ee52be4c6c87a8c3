"""Names of the arguments of a call, as in its source: `cudaMalloc(&matrix, bytes)` allocates `matrix`.

They come from the machine code before the call (`dataflow`) and the debug information (`variables`), so they are found
even if a macro or a wrapper hides the line of the call. Without debug information there are no names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elftools.common.exceptions import DWARFError, ELFError
from elftools.elf.elffile import ELFFile

from ffm.regular_file import open_regular
from ffm.symbols.dataflow import Code, Fixed, Held, Loaded, Plus, Value
from ffm.symbols.demangle import demangle
from ffm.symbols.variables import POINTERS, Function, Variable, Variables, member_at, size_of, type_of

DEEPEST = 8
"""Most steps followed from value to value."""


class ArgumentNames:
    """Names the arguments of calls in one module. The file is read on first use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._elf: Any = None
        self._variables: Variables | None = None
        self._calls: dict[tuple[int, int], _Call | None] = {}
        self._codes: dict[int, Code] = {}

    def pointed_to(self, return_address: int, argument: int, line: int = 0) -> str:
        """Return the name of the variable whose address is passed; empty if it is unknown.

        `return_address` is the link-time address after the call, whose line is `line` (0 if unknown); arguments count
        from 0.
        """
        return self._ask(return_address, argument, line, of_address=True)

    def passed(self, return_address: int, argument: int, line: int = 0) -> str:
        """Return the name of the variable whose value is passed; empty if it is unknown."""
        return self._ask(return_address, argument, line, of_address=False)

    def _ask(self, return_address: int, argument: int, line: int, *, of_address: bool) -> str:
        try:
            if (return_address, line) not in self._calls:
                self._calls[return_address, line] = self._call(return_address, line)
            call = self._calls[return_address, line]
            value = None if call is None else call.code.argument(argument)
            if call is None or value is None:
                return ""
            return call.object_at(value) if of_address else call.content(value)
        except (OSError, ELFError, DWARFError, ValueError, KeyError, AssertionError, NotImplementedError):
            return ""  # damaged or unusual debug information yields no names

    def _call(self, return_address: int, line: int) -> _Call | None:
        if self._elf is None:
            self._elf = ELFFile(open_regular(self._path))
            if self._elf.has_dwarf_info():
                # Only object files have relocations to apply; searching for some takes most of the time.
                self._variables = Variables(self._elf.get_dwarf_info(relocate_dwarf_sections=False))
        if self._variables is None:
            return None
        function = self._variables.function_at(return_address - 1, line)
        if function is None:
            return None
        code = self._codes.setdefault(function.start, Code(b"", function.start))
        if code.end < return_address:  # functions are decoded once, as far as calls in them are named
            code.extend(self._content(code.end, return_address))
        return _Call(self._elf, self._variables, function, code.until(return_address))

    def _content(self, start: int, end: int) -> bytes:
        for segment in self._elf.iter_segments("PT_LOAD"):
            offset = start - segment["p_vaddr"]
            if offset >= 0 and end - segment["p_vaddr"] <= segment["p_filesz"]:
                return bytes(segment.data()[offset : offset + end - start])
        return b""


class _Call:
    """A call with the names around it."""

    def __init__(self, elf: Any, variables: Variables, function: Function, code: Code) -> None:
        self._elf, self._variables, self._function = elf, variables, function
        self.code = code

    def content(self, value: Value, depth: int = 0) -> str:
        """Return the name of what a value is."""
        if isinstance(value, Loaded):
            return self.object_at(value.address, depth)
        if isinstance(value, Held):
            variable = next((one for one in self._at(value.address) if one.register == value.register), None)
            if variable is not None:
                return variable.name
            before = self.code.step_back(value) if depth < DEEPEST else None
            return "" if before is None else self.content(before, depth + 1)
        name = self.object_at(value, depth)
        return name and f"&{name}"

    def object_at(self, value: Value, depth: int = 0) -> str:
        """Return the name of the object that a value points to."""
        if isinstance(value, Fixed):
            return self._global(value.address)
        base, offset = (value.value, value.offset) if isinstance(value, Plus) else (value, 0)
        if isinstance(base, Held):
            slot = self._slot(base, offset)
            if slot is not None:
                return self._local(slot)
            name = self._through_register(base, offset)
            if name:
                return name
            before = self.code.step_back(base) if depth < DEEPEST else None
            if before is None:
                return ""
            if isinstance(before, Plus):
                return self.object_at(Plus(before.value, before.offset + offset), depth + 1)
            return self.object_at(Plus(before, offset) if offset else before, depth + 1)
        if isinstance(base, Loaded) and isinstance(base.address, Plus) and isinstance(base.address.value, Held):
            slot = self._slot(base.address.value, base.address.offset)
            pointers = (one for one in self._function.variables if slot is not None and one.frame_offset == slot)
            return next((_through(one, offset) for one in pointers if one.kind.tag in POINTERS), "")
        return ""

    def _at(self, address: int) -> list[Variable]:
        found = self._variables.function_at(address)
        return [] if found is None else found.variables

    def _slot(self, base: Held, offset: int) -> int | None:
        """Return the offset from the frame's base of an address that is relative to the frame."""
        frame = self._variables.frame_base(base.address)
        if frame is None or frame[0] != base.register:
            return None
        return offset - frame[1]

    def _local(self, slot: int) -> str:
        for variable in self._function.variables:
            start = variable.frame_offset
            if start is not None and start <= slot < start + max(size_of(variable.kind), 1):
                return variable.name + member_at(variable.kind, slot - start)
        return ""

    def _through_register(self, base: Held, offset: int) -> str:
        for variable in self._at(base.address):
            if variable.register == base.register and variable.kind.tag in POINTERS:
                return _through(variable, offset)
        return ""

    def _global(self, address: int) -> str:
        for section in self._elf.iter_sections("SHT_SYMTAB"):
            for symbol in section.iter_symbols():
                start, size = symbol["st_value"], symbol["st_size"]
                if symbol["st_info"]["type"] == "STT_OBJECT" and start <= address < start + max(size, 1):
                    return demangle(symbol.name)
        return ""


def _through(pointer: Variable, offset: int) -> str:
    """Return the name of what a pointer or reference leads to."""
    path = member_at(type_of(pointer.kind), offset)
    if pointer.name == "this":
        return path.removeprefix(".")
    if pointer.kind.tag == "DW_TAG_pointer_type":
        return f"{pointer.name}->{path[1:]}" if path.startswith(".") else f"*{pointer.name}"
    return pointer.name + path
