"""Return addresses of real compiled programs resolve to what the source says."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from ffm.results.documents.notes import (
    FailedSymbolizer,
    OtherModule,
    UnidentifiedModule,
    UnreadableLines,
    UnusableModule,
)
from ffm.symbols import Location, SourceFrame, Symbolizer
from ffm.symbols.elf import SymbolTable, read_elf
from ffm.symbols.llvm import find_llvm_symbolizer, source_path, symbolize
from ffm.vgpu.paths import sample
from tests.symbols.symbol_programs import Program, build_in, line_of

Build = Callable[..., Program]
needs_llvm = pytest.mark.skipif(find_llvm_symbolizer() is None, reason="llvm-symbolizer is not installed")
LLVM: dict[str, bool] = {}
SYMBOLIC = {"use_llvm": False}
TABLES = {"use_lines": False}
READERS = pytest.mark.parametrize("ways", [pytest.param(LLVM, marks=needs_llvm), SYMBOLIC])
ANY = pytest.mark.parametrize("ways", [pytest.param(LLVM, marks=needs_llvm), SYMBOLIC, TABLES])
LINKS = pytest.mark.parametrize("link", ["-pie", "-no-pie"])


@pytest.fixture
def build(tmp_path: Path) -> Build:
    return build_in(tmp_path)


@READERS
@LINKS
def test_inlined_functions_come_innermost_first_with_their_lines(
    build: Build, link: str, ways: dict[str, bool]
) -> None:
    program = build("-g", "-fPIE" if link == "-pie" else "-fno-pie", link)
    symbolizer = Symbolizer(**ways)
    [frames] = symbolizer.resolve([program.location("inlined")])
    assert [(frame.function, Path(frame.file).name, frame.line) for frame in frames] == [
        ("inner()", "probe.cpp", line_of("INNER")),
        ("middle()", "probe.cpp", line_of("MIDDLE")),
        ("outer::Table<int>::add(int)", "probe.cpp", line_of("OUTER")),
    ]
    assert symbolizer.notes == []


@READERS
def test_a_file_has_one_path_however_the_compiler_was_told(build: Build, tmp_path: Path, ways: dict[str, bool]) -> None:
    program = build("-g", f"-fdebug-prefix-map={tmp_path}={tmp_path}/build/..")
    [frames] = Symbolizer(**ways).resolve([program.location("inlined")])
    assert {frame.file for frame in frames} == {str(tmp_path / "probe.cpp")}


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("./stdlib/./stdlib/exit.c", "stdlib/exit.c"),
        ("./csu/../sysdeps/nptl/libc_start_call_main.h", "sysdeps/nptl/libc_start_call_main.h"),
        ("./solver/solver/main.c", "solver/solver/main.c"),
        ("/build/./solver/./solver/main.c", "/build/solver/solver/main.c"),
    ],
)
def test_a_folder_that_was_joined_to_itself_counts_once(said: str, path: str) -> None:
    assert source_path(said) == path


@LINKS
def test_symbol_tables_give_the_real_function_without_lines(build: Build, link: str) -> None:
    program = build("-g", "-fPIE" if link == "-pie" else "-fno-pie", link)
    symbolizer = Symbolizer(**TABLES)
    assert symbolizer.resolve([program.location("inlined")]) == [[SourceFrame("outer::Table<int>::add(int)")]]


@ANY
def test_a_split_function_keeps_its_name(build: Build, ways: dict[str, bool]) -> None:
    program = build("-g", "-freorder-blocks-and-partition")
    listing = subprocess.run(["nm", str(program.path)], check=True, capture_output=True, text=True).stdout
    assert "split.cold" in listing, "the compiler did not split the function, so this test says nothing"
    [frames] = Symbolizer(**ways).resolve([program.location("cold")])
    assert frames[-1].function == "split"


@ANY
def test_a_call_at_the_very_end_belongs_to_its_own_function(build: Build, ways: dict[str, bool]) -> None:
    program = build("-g")
    location = program.location("last")
    [frames] = Symbolizer(**ways).resolve([location])
    assert frames[-1].function == "last_thing()"


@ANY
def test_a_return_address_is_looked_up_one_byte_earlier(build: Build, ways: dict[str, bool]) -> None:
    program = build("-g")
    elf = read_elf(program.path)
    names = subprocess.run(["nm", "-S", str(program.path)], check=True, capture_output=True, text=True).stdout
    start, size = next(line.split()[:2] for line in names.splitlines() if line.endswith(" main"))
    end = int(start, 16) + int(size, 16) - elf.base
    behind = Location(str(program.path), elf.build_id, end, return_address=True)
    exact = Location(str(program.path), elf.build_id, end)
    frames_behind, frames_exact = Symbolizer(**ways).resolve([behind, exact])
    assert frames_behind[-1].function == "main"
    assert [frame.function for frame in frames_exact] != ["main"]


@ANY
def test_exports_of_a_stripped_library_keep_their_names(tmp_path: Path, ways: dict[str, bool]) -> None:
    source, library = tmp_path / "library.cpp", tmp_path / "libexports.so"
    source.write_text(
        'namespace gpu { void wait(int) { asm volatile("nop;nop"); } }\n'
        'extern "C" int cudaExported(void) { asm volatile("nop;nop"); return 3; }\n'
        'extern "C" __attribute__((visibility("hidden"))) int hidden(int a) { return a * a + 5; }\n'
    )
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-Wl,--build-id", str(source), "-o", str(library)], check=True)
    listing = subprocess.run(["nm", str(library)], check=True, capture_output=True, text=True).stdout
    hidden = next(int(line.split()[0], 16) for line in listing.splitlines() if line.endswith(" hidden"))
    assert SymbolTable(library).name_at(hidden) == "hidden"
    subprocess.run(["strip", str(library)], check=True)
    elf = read_elf(library)
    loaded = ctypes.CDLL(str(library))
    place = ctypes.cast(loaded.cudaExported, ctypes.c_void_p).value
    other = ctypes.cast(loaded._ZN3gpu4waitEi, ctypes.c_void_p).value
    assert place is not None and other is not None
    base = min(
        int(line.split("-")[0], 16)
        for line in Path("/proc/self/maps").read_text().splitlines()
        if line.endswith(str(library))
    )
    found = Symbolizer(**ways).resolve(
        [Location(str(library), elf.build_id, offset) for offset in (place - base + 1, other - base, hidden)]
    )
    assert found == [[SourceFrame("cudaExported")], [SourceFrame("gpu::wait(int)")], []]


def test_a_changed_module_is_not_symbolised(build: Build) -> None:
    program = build("-g")
    old = program.location("inlined")
    assert build("-g", "-O1").path == program.path
    symbolizer = Symbolizer()
    assert symbolizer.resolve([old]) == [[]]
    assert isinstance(symbolizer.notes[-1], OtherModule)


def test_what_is_no_module_is_named_in_a_note(tmp_path: Path) -> None:
    text = tmp_path / "text.so"
    text.write_text("not a library")
    symbolizer = Symbolizer()
    locations = [Location(str(text), "ab", 16), Location(str(tmp_path / "gone.so"), "ab", 16)]
    assert symbolizer.resolve(locations) == [[], []]
    problems = [note.problem for note in symbolizer.notes if isinstance(note, UnusableModule)]
    gone = tmp_path / "gone.so"
    assert problems == [f"{text} is not an ELF file", f"{gone} cannot be read (No such file or directory)"]


def test_a_module_without_build_id_is_resolved_but_noted(build: Build) -> None:
    program = build("-g", "-Wl,--build-id=none")
    symbolizer = Symbolizer()
    [frames] = symbolizer.resolve([program.location("inlined")])
    assert frames[-1].function == "outer::Table<int>::add(int)"
    assert isinstance(symbolizer.notes[-1], UnidentifiedModule)


def test_a_failing_symbolizer_is_said_and_the_lines_are_read_without_it(build: Build, tmp_path: Path) -> None:
    broken = tmp_path / "llvm-symbolizer"
    broken.write_text("#!/bin/sh\necho 'out of order' >&2\nexit 1\n")
    broken.chmod(0o755)
    program = build("-g")
    symbolizer = Symbolizer(str(broken))
    [frames] = symbolizer.resolve([program.location("inlined")])
    assert [frame.line for frame in frames] == [line_of("INNER"), line_of("MIDDLE"), line_of("OUTER")]
    (note,) = symbolizer.notes
    assert isinstance(note, FailedSymbolizer) and "out of order" in note.problem


def test_damaged_debug_information_is_said_and_replaced_by_symbol_tables(build: Build) -> None:
    program = build("-g")
    location = program.location("inlined")
    with program.path.open("r+b") as file:
        for name in (".debug_info", ".debug_abbrev"):
            section = ELFFile(file).get_section_by_name(name)
            file.seek(section["sh_offset"])
            file.write(b"\xff" * section["sh_size"])
    symbolizer = Symbolizer(use_llvm=False)
    assert symbolizer.resolve([location]) == [[SourceFrame("outer::Table<int>::add(int)")]]
    assert isinstance(symbolizer.notes[0], UnreadableLines)


@needs_llvm
@pytest.mark.parametrize("name", ["als", "amg", "flag", "overlap"])
def test_calls_of_the_samples_are_at_the_same_lines_by_both_readers(name: str) -> None:
    """Files and lines: for functions with the same code each reader names another one, and lambdas are spelled
    differently.
    """
    program = sample(name)
    listing = subprocess.run(["objdump", "-d", program], check=True, capture_output=True, text=True).stdout
    after = [int(line, 16) for line in re.findall(r"\tcall .*\n +([0-9a-f]+):", listing)]
    module = read_elf(program)
    places = [Location(str(program), module.build_id, address - module.base, True) for address in after]
    found = zip(Symbolizer().resolve(places), Symbolizer(use_llvm=False).resolve(places), strict=True)
    assert len(after) > 50
    for frames in found:
        llvm, symbolic = ([(frame.file, frame.line) for frame in each if frame.line] for each in frames)
        assert llvm == symbolic


@needs_llvm
@pytest.mark.parametrize("name", ["it's here.so", 'a "b" c.so', "0x10"])
def test_modules_with_unusual_names_are_looked_up_together(build: Build, tmp_path: Path, name: str) -> None:
    program = build("-g")
    copy = tmp_path / name
    shutil.copy(program.path, copy)
    location = program.location("inlined")
    there = replace(location, path=str(copy))
    symbolizer = Symbolizer()
    found = symbolizer.resolve([location, there, location])
    assert [[frame.function for frame in frames] for frames in found] == [
        ["inner()", "middle()", "outer::Table<int>::add(int)"]
    ] * 3
    assert symbolizer.notes == []


def test_names_that_the_symbolizer_leaves_mangled_are_read(tmp_path: Path) -> None:
    program = tmp_path / "symbolizer"
    program.write_text("#!/bin/sh\nprintf '_Z1fIiEvT_\\n/src/a.cu:3:1\\n\\n'\n")
    program.chmod(0o755)
    assert symbolize(str(program), [(Path("/bin/true"), 1)]) == [[SourceFrame("void f<int>(int)", "/src/a.cu", 3)]]


@needs_llvm
def test_a_module_that_llvm_cannot_look_up_is_read_by_itself(build: Build, tmp_path: Path) -> None:
    program = build("-g")
    copy = tmp_path / """both ' and ".so"""
    shutil.copy(program.path, copy)
    location = program.location("inlined")
    symbolizer = Symbolizer()
    one, other = symbolizer.resolve([location, replace(location, path=str(copy))])
    assert len(one) == 3
    assert one == other
    (note,) = symbolizer.notes
    assert isinstance(note, FailedSymbolizer) and note.path == str(copy)


@needs_llvm
def test_many_addresses_come_back_in_order_and_once_each(build: Build) -> None:
    program = build("-g")
    first, second = program.location("inlined"), program.location("last")
    found = Symbolizer().resolve([first, second] * 500)
    assert [frames[-1].function for frames in found] == ["outer::Table<int>::add(int)", "last_thing()"] * 500


@needs_llvm
def test_a_versioned_symbolizer_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("9", "14"):
        shutil.copy("/bin/true", tmp_path / f"llvm-symbolizer-{version}")
    monkeypatch.setenv("PATH", str(tmp_path))
    find_llvm_symbolizer.cache_clear()
    try:
        assert find_llvm_symbolizer() == os.fspath(tmp_path / "llvm-symbolizer-14")
    finally:
        find_llvm_symbolizer.cache_clear()
