"""The PTX of what a program loads from its own file."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from ffm.driver.device_sources import device_sources, sources_of_file

TEXT = ".version 8.0\\n.target sm_90\\n.visible .entry kernel() { ret; }\\n"
SOURCE = f'extern "C" const char constant[] = "{TEXT}"; extern "C" char changeable[] = "{TEXT}";'


def offset_of(library: Path, symbol: str) -> int:
    with library.open("rb") as file:
        elf = ELFFile(file)
        (found,) = elf.get_section_by_name(".dynsym").get_symbol_by_name(symbol)
        return int(found["st_value"]) - min(one["p_vaddr"] for one in elf.iter_segments("PT_LOAD")) // 4096 * 4096


def library_of(folder: Path, source: str) -> Path:
    (folder / "code.cpp").write_text(source)
    library = folder / "libcode.so"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", library, folder / "code.cpp"], check=True)
    return library


def test_ptx_that_the_program_cannot_change(tmp_path: Path) -> None:
    library = library_of(tmp_path, SOURCE)
    assert device_sources(library, offset_of(library, "constant")) == [TEXT.replace("\\n", "\n")]
    assert device_sources(library, offset_of(library, "changeable")) is None
    assert device_sources(library, 1 << 40) is None
    assert device_sources(tmp_path / "none", 0) is None


def container(*parts: tuple[int, int, int]) -> str:
    """The source of a container of (kind, architecture, flags)."""
    body = b""
    for kind, architecture, flags in parts:
        text = f"// {architecture}".encode().ljust(16, b"\0")
        body += struct.pack("<HHIQIIIIIIQQQ", kind, 0x101, 64, len(text), 0, 0, 0, architecture, 0, 0, flags, 0, 0)
        body += text
    content = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body
    return f'extern "C" const unsigned char constant[] = {{{", ".join(map(str, content))}}};'


PTX, CUBIN, SPECIFIC = 1, 2, 0x100000


@pytest.mark.parametrize(
    ("parts", "sources"),
    [
        ([(CUBIN, 90, 0), (PTX, 90, 0)], ["// 90"]),
        ([(CUBIN, 80, 0), (CUBIN, 90, 0), (PTX, 80, 0), (PTX, 90, 0)], ["// 80", "// 90"]),
        ([(PTX, 80, 0)], ["// 80"]),
        ([(CUBIN, 80, 0), (CUBIN, 90, 0), (PTX, 90, 0)], None),
        ([(CUBIN, 90, SPECIFIC), (PTX, 90, 0)], None),
        ([(CUBIN, 90, 0)], None),
        ([(3, 90, 0), (PTX, 90, 0)], None),
    ],
)
def test_ptx_must_tell_of_all_machine_code(
    tmp_path: Path, parts: list[tuple[int, int, int]], sources: list[str] | None
) -> None:
    library = library_of(tmp_path, container(*parts))
    assert device_sources(library, offset_of(library, "constant")) == sources


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="there is no nvcc")
@pytest.mark.parametrize("options", [[], ["-Xcompiler", "-no-pie", "-Xlinker", "-no-pie"]])
def test_programs_of_nvcc(tmp_path: Path, options: list[str]) -> None:
    source, program = tmp_path / "kernel.cu", tmp_path / "program"
    source.write_text("__global__ void kernel(float *x) { x[0] = 1; }\nint main() { kernel<<<1, 1>>>(nullptr); }\n")
    subprocess.run(
        ["nvcc", "-arch=sm_90", *options, "-cudart", "shared", "-o", program, source], check=True, capture_output=True
    )
    with program.open("rb") as file:
        elf = ELFFile(file)
        wrappers = elf.get_section_by_name(".nvFatBinSegment")
        begin = wrappers["sh_addr"] - min(one["p_vaddr"] for one in elf.iter_segments("PT_LOAD")) // 4096 * 4096
        places = range(begin, begin + wrappers["sh_size"], 24)
    sources = [device_sources(program, place) for place in places]
    assert any("_Z6kernelPf" in text for found in sources for text in found or [])
    assert list(sources_of_file(program)) == [text for found in sources for text in found or []]


def test_a_file_that_registers_no_code_has_no_sources(tmp_path: Path) -> None:
    assert list(sources_of_file(library_of(tmp_path, SOURCE))) == []
    (tmp_path / "text").write_text("no ELF file")
    assert list(sources_of_file(tmp_path / "text")) == list(sources_of_file(tmp_path / "none")) == []
