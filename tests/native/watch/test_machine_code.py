"""Which bytes of their parameters kernels read, from their machine code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.native.cubins import EXIT, FIRST_PARAMETER, cubin, load, store
from tests.native.layers import NATIVE

MAIN = """
#include <stdio.h>
#include <stdlib.h>
#include "machine_code.h"
static void show(const ffm_kernel_code *kernel, void *context)
{
    (void)context;
    printf("%s ", kernel->name);
    for (uint32_t place = 0; place < kernel->bytes; place++)
        putchar(kernel->read[place / 8] >> place % 8 & 1 ? 'r' : '-');
    if (kernel->variables)
        fputs(" other banks", stdout);
    if (!kernel->asserts)
        puts(" calls others");
}
int main(int argc, char **argv)
{
    FILE *file = fopen(argv[argc - 1], "rb");
    fseek(file, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(file);
    uint8_t *code = malloc(bytes);
    rewind(file);
    if (fread(code, 1, bytes, file) == bytes)
        ffm_machine_code_kernels(code, bytes, show, NULL);
    free(code);
}
"""
GIVEN = [(0, 8), (8, 16)]
POINTER = load(FIRST_PARAMETER, 8)
COUNT = load(FIRST_PARAMETER + 16, 4)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("code")
    (folder / "main.c").write_text(MAIN)
    here = NATIVE / "watch" / "machine"
    sources = [str(here / name) for name in ("machine_code.c", "machine_instruction.c")]
    subprocess.run(
        ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
         f"-I{here}", "-o", str(folder / "reader"), str(folder / "main.c"), *sources],
        check=True,
    )  # fmt: skip
    return folder / "reader"


def read(reader: Path, folder: Path, code: bytes) -> str:
    (folder / "code").write_bytes(code)
    done = subprocess.run([reader, folder / "code"], capture_output=True, text=True, check=True)
    return done.stdout


def test_what_no_instruction_reads_is_told(reader: Path, tmp_path: Path) -> None:
    code = cubin("kernel", GIVEN, [POINTER, COUNT, store(2, 5), EXIT])
    assert read(reader, tmp_path, code) == "kernel rrrrrrrr--------rrrr----"


def test_barriers_are_no_parameters(reader: Path, tmp_path: Path) -> None:
    saved, restored = (0x000000000B157355, 0x0000100000), (0x000000150A007356, 0)  # BMOV.32.CLEAR R21, B11; B10, R21
    code = cubin("kernel", GIVEN, [POINTER, COUNT, saved, restored, EXIT])
    assert read(reader, tmp_path, code) == "kernel rrrrrrrr--------rrrr----"


def test_other_banks_are_no_parameters(reader: Path, tmp_path: Path) -> None:
    code = cubin("kernel", GIVEN, [POINTER, COUNT, load(FIRST_PARAMETER + 8, 8, bank=4), EXIT])
    assert read(reader, tmp_path, code) == "kernel rrrrrrrr--------rrrr---- other banks"


def test_behind_an_index_any_parameter_may_be_read(reader: Path, tmp_path: Path) -> None:
    for place in (FIRST_PARAMETER + 8, FIRST_PARAMETER - 8):  # compilers put a part of the index there
        indexed = load(place, 8, index=2)
        assert read(reader, tmp_path, cubin("kernel", GIVEN, [indexed, EXIT])) == f"kernel {'r' * 24}"


@pytest.mark.parametrize(
    "instruction",
    [
        load(0x198, 8),  # the address of the bank, from which code may load
        (0x7B60, 0),  # a texture, whose handle may be a parameter
        (0x0000000003447943, 0),  # a call of what is elsewhere
        (0x00007FFC00FC7947, 0x3FFFF),  # a branch out of the code
        (0x000000051E007356, 0),  # where threads go on that end: BMOV.32 ATEXIT_PC.LO, R5
        (0x0000005000007A24, 0),  # a form that this architecture does not have
        (0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF),
    ],
)
def test_what_is_not_known_reads_everything(reader: Path, tmp_path: Path, instruction: tuple[int, int]) -> None:
    assert read(reader, tmp_path, cubin("kernel", GIVEN, [POINTER, instruction, EXIT])) == ""


def test_code_of_an_unknown_layout_reads_everything(reader: Path, tmp_path: Path) -> None:
    code = [POINTER, EXIT]
    assert read(reader, tmp_path, cubin("kernel", GIVEN, code)) != ""
    assert read(reader, tmp_path, cubin("kernel", GIVEN, code, architecture=70)) == ""
    assert read(reader, tmp_path, cubin("kernel", GIVEN, code, relocations=bytes(24))) == ""
    whole = cubin("kernel", GIVEN, code)
    for end in range(0, len(whole), 7):
        assert read(reader, tmp_path, whole[:end]) == ""


@pytest.mark.parametrize(("named", "others"), [("", False), ("__assertfail", False), ("vprintf", True)])
def test_which_functions_elsewhere_are_named_is_told(reader: Path, tmp_path: Path, named: str, *, others: bool) -> None:
    code = cubin("kernel", GIVEN, [POINTER, EXIT], named=named)
    assert ("calls others" in read(reader, tmp_path, code)) is others


@pytest.mark.parametrize("place", [0x20, 0x24])
def test_where_stacks_are_is_no_parameter(reader: Path, tmp_path: Path, place: int) -> None:
    code = cubin("kernel", GIVEN, [POINTER, COUNT, load(place, 4), EXIT])
    assert read(reader, tmp_path, code) == "kernel rrrrrrrr--------rrrr----"
