"""How many bytes of variables code has that is loaded, from machine code, PTX and containers as nvcc makes them."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from tests.native.layers import NATIVE

MAIN = """
#include <stdio.h>
#include "device_code.h"
int main(int argc, char **argv)
{
    static _Alignas(8) char image[1 << 16];
    FILE *file = fopen(argv[argc - 1], "rb");
    fread(image, 1, sizeof image - 1, file);
    printf("%lld", (long long)ffm_device_code_variables(image));
}
"""
PTX, MACHINE, ZSTANDARD = 1, 2, 0x8000


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "main.c").write_text(MAIN)
    here = NATIVE / "watch" / "reach"
    subprocess.run(
        ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{here}", "-o", str(folder / "reader"), str(folder / "main.c"), str(here / "device_code.c")],
        check=True,
    )  # fmt: skip
    return folder / "reader"


def machine_code(*sections: str) -> bytes:
    """A cubin with these sections, all empty."""
    all_names = b"\0".join(name.encode() for name in ("", ".shstrtab", *sections)) + b"\0"
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    table = 64 + len(all_names)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, table, 0, 64, 0, 0, 64, 2 + len(sections), 1)
    rows, place = bytes(64), 1
    for name in (".shstrtab", *sections):
        rows += struct.pack("<IIQQQQIIQQ", place, 3, 0, 0, 64, len(all_names), 0, 0, 1, 0)
        place += len(name) + 1
    return header + all_names + rows


def container(*parts: tuple[int, bytes, int]) -> bytes:
    """A container of parts: kind, code, flags."""
    entries = b"".join(
        struct.pack("<HHIQIIIIIIQQQ", kind, 0x101, 64, len(code), 0, 0, 0, 90, 0, 0, flags, 0, 0) + code
        for kind, code, flags in parts
    )
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def text(line: str = "") -> bytes:
    return (
        b".version 9.0\n.target sm_90\n" + line.encode() + b".visible .entry k() { ld.global.u32 %r1, [%rd1]; ret; }\n"
    )


WITHOUT = machine_code(".text.k", ".nv.constant3", ".nv.info.k")
WITH = machine_code(".text.k", ".nv.global")


@pytest.mark.parametrize(
    ("image", "lacks"),
    [
        (WITHOUT, True),
        (WITH, False),
        (machine_code(".nv.global.init"), False),
        (text(), True),
        (text(".const .align 4 .f32 c[4];\n"), True),
        (text(".global .align 4 .u32 counter;\n"), False),
        (text("/* made */.visible .global .u32 counter;\n"), False),
        (container((MACHINE, WITHOUT, 0), (PTX, b"compressed", ZSTANDARD)), True),
        (container((MACHINE, WITHOUT, 0), (MACHINE, WITH, 0)), False),
        (container((MACHINE, WITHOUT, 0), (MACHINE, b"compressed", ZSTANDARD)), False),
        (container((PTX, b"compressed", ZSTANDARD)), False),
        (container()[:-1] + b"\1" + bytes(8), False),
        (b"LTO-IR of a form that is not known", False),
    ],
)
def test_code_lacks_variables_if_its_machine_code_or_text_says_so(
    reader: Path, tmp_path: Path, image: bytes, lacks: bool
) -> None:
    file = tmp_path / "image"
    file.write_bytes(image)
    found = subprocess.run([str(reader), str(file)], capture_output=True, text=True, check=True)
    assert (found.stdout == "0") == lacks


def test_variables_are_counted_by_the_sections_that_hold_them(reader: Path, tmp_path: Path) -> None:
    names = (".nv.global", ".nv.global.init")
    bytes_of_each = len("\0.shstrtab\0.nv.global\0.nv.global.init\0")
    for name, image, variables in [
        ("machine", machine_code(*names), 2 * bytes_of_each),
        ("container", container((MACHINE, WITHOUT, 0), (MACHINE, machine_code(*names), 0)), 2 * bytes_of_each),
        ("text", text(".global .align 4 .u32 counter;\n"), -1),
    ]:
        (tmp_path / name).write_bytes(image)
        found = subprocess.run([str(reader), str(tmp_path / name)], capture_output=True, text=True, check=True)
        assert int(found.stdout) == variables
