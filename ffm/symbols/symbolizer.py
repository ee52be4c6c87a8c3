"""From code addresses to source, in batches, after the run."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from ffm.results.documents.notes import (
    AnyNote,
    FailedSymbolizer,
    OtherModule,
    UnidentifiedModule,
    UnreadableLines,
    UnusableModule,
)
from ffm.symbols.demangle import demangle
from ffm.symbols.elf import ElfFile, SymbolTable, read_elf
from ffm.symbols.llvm import SymbolizerError, find_llvm_symbolizer, symbolize
from ffm.symbols.locations import Location, SourceFrame
from ffm.symbols.symbolic import DebugInformationError, look_up


class Symbolizer:
    """Resolves code addresses with llvm-symbolizer, else with the package symbolic, else with the symbol tables.

    Symbol tables give only function names: no files, lines or inlined functions. `notes` says what could not be fully
    resolved, once for each cause.
    """

    def __init__(self, program: str | None = None, *, use_llvm: bool = True, use_lines: bool = True) -> None:
        """Use the given llvm-symbolizer, or the installed one if it is allowed; without `use_lines` symbol tables."""
        self._program = (program or find_llvm_symbolizer()) if use_llvm and use_lines else None
        self._use_lines = use_lines
        self._modules: dict[tuple[str, str], ElfFile | None] = {}
        self._tables: dict[Path, SymbolTable] = {}
        self._known: dict[Location, list[SourceFrame]] = {}
        self._notes: dict[AnyNote, None] = {}

    @property
    def notes(self) -> list[AnyNote]:
        """Return what could not be resolved and why, in order of occurrence."""
        return list(self._notes)

    def resolve(self, locations: list[Location]) -> list[list[SourceFrame]]:
        """Resolve many locations at once: one external process for all of them, or one reader for each module.

        Returns:
            For each location the functions there, innermost inlined one first; the last one is the function that is
            really called. Empty if nothing is known: then module and offset name the place.
        """
        wanted: dict[tuple[str, str], list[Location]] = defaultdict(list)
        for location in dict.fromkeys(locations):
            if location not in self._known:
                wanted[location.path, location.build_id].append(location)
        groups: dict[ElfFile, list[Location]] = {}
        for (path, build_id), group in wanted.items():
            module = self._module(path, build_id)
            if module is None:
                self._known.update((location, []) for location in group)
            else:
                groups[module] = group
        self._look_up(groups)
        return [self._known[location] for location in locations]

    def _note(self, note: AnyNote) -> None:
        self._notes[note] = None

    def _module(self, path: str, build_id: str) -> ElfFile | None:
        """Return the module on disk, if it is the one that was recorded."""
        if (path, build_id) not in self._modules:
            self._modules[path, build_id] = self._check(path, build_id)
        return self._modules[path, build_id]

    def _check(self, path: str, build_id: str) -> ElfFile | None:
        try:
            module = read_elf(Path(path))
        except OSError as error:
            self._note(UnusableModule(problem=f"{path} cannot be read ({error.strerror})"))
            return None
        except ValueError as error:
            self._note(UnusableModule(problem=str(error)))
            return None
        if module.build_id != build_id.lower():
            self._note(OtherModule(path=path, build_id=module.build_id, recorded=build_id))
            return None
        if not build_id:
            self._note(UnidentifiedModule(path=path))
        return module

    def _look_up(self, groups: dict[ElfFile, list[Location]]) -> None:
        """Look up the locations in each module: all together or, if that fails, module by module."""
        if self._program is not None and len(groups) > 1:
            try:
                self._know(groups, self._symbolized(groups))
                return
            except (SymbolizerError, OSError):
                pass  # the failing module is found below
        for module, group in groups.items():
            self._know({module: group}, self._look_up_one(module, group))

    def _look_up_one(self, module: ElfFile, group: list[Location]) -> list[list[SourceFrame]]:
        if self._program is not None:
            try:
                return self._symbolized({module: group})
            except (SymbolizerError, OSError) as error:
                self._note(FailedSymbolizer(program=self._program, path=str(module.path), problem=str(error)))
        if self._use_lines and module.has_lines:
            try:
                return look_up(module.path, [_address(module, location) - module.base for location in group])
            except DebugInformationError as error:
                self._note(UnreadableLines(path=str(module.path), problem=str(error)))
        table = self._tables.get(module.path)
        if table is None:
            table = self._tables[module.path] = SymbolTable(module.path)
        names = [table.name_at(_address(module, location)) for location in group]
        return [[SourceFrame(demangle(name))] if name else [] for name in names]

    def _symbolized(self, groups: dict[ElfFile, list[Location]]) -> list[list[SourceFrame]]:
        assert self._program is not None
        places = [(module.path, _address(module, location)) for module, group in groups.items() for location in group]
        return symbolize(self._program, places)

    def _know(self, groups: dict[ElfFile, list[Location]], frames: list[list[SourceFrame]]) -> None:
        locations = (location for group in groups.values() for location in group)
        self._known.update(zip(locations, frames, strict=True))


def _address(module: ElfFile, location: Location) -> int:
    return module.base + location.offset - location.return_address
