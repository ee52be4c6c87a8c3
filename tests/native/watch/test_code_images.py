"""Which bytes of their parameters the kernels of code never read that a program gives to the driver."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest

from tests.conftest import cuda_include
from tests.native.cubins import EXIT, FIRST_PARAMETER, container, cubin, load, store
from tests.native.layers import NATIVE, includes_of

MAIN = """
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include "code_image.h"

/* Two GPUs: of compute capability 9.0, and 8.6. */
static int attribute(int *value, uint32_t kind, int device)
{
    static const int capabilities[2][2] = {{9, 0}, {8, 6}};
    if (device > 1)
        return 101;
    *value = capabilities[device][kind == 76];
    return 0;
}

/* FILE BYTE: whether the kernel ignores its parameters' eight bytes from BYTE on; or, in place of BYTE, `variables`:
 * whether it uses none. With `wrapped`, nvcc's wrapper is
 * loaded in place of the container. The code ends where the mapped memory does. */
int main(int argc, char **argv)
{
    FILE *file = fopen(argv[1], "rb");
    fseek(file, 0, SEEK_END);
    const size_t bytes = (size_t)ftell(file), pages = (bytes + 4095) / 4096 * 4096;
    char *start = mmap(NULL, pages + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *code = start + pages - bytes;
    mprotect(start + pages, 4096, PROT_NONE);
    rewind(file);
    const bool read = fread(code, 1, bytes, file) == bytes;
    const struct { uint32_t magic, version; const void *container, *unused; char behind[40]; } wrapper =
        {0x466243b1, 1, code, NULL, {0}};
    ffm_code_image_ask((void *)(uintptr_t)attribute);
    const bool wrapped = argc > 3 && strcmp(argv[3], "wrapped") == 0;
    ffm_code_image image = ffm_code_image_read(wrapped ? (uint64_t)&wrapper : (uint64_t)code);
    const uint64_t word = 0x7f0012345678;
    if (strcmp(argv[2], "variables") == 0)
        puts(read && ffm_code_image_lacks_variables(&image, "kernel") ? "uses none" : "may use some");
    else
        puts(read && ffm_code_image_ignores(&image, "kernel", strtoul(argv[2], NULL, 10), word) ? "ignored" : "read");
    ffm_code_image_free(&image);
    munmap(start, pages + 4096);
}
"""
UNREAD, READ = 8, 0
"""Where the kernel's parameters begin that it does not read, and that it does."""

POINTER, UNSET, COUNT = (
    load(FIRST_PARAMETER + place, width, to=to) for place, width, to in ((0, 8, 2), (8, 8, 6), (16, 4, 5))
)


TABLE = load(0, 8, bank=4, to=8)
"""From the bank that holds the addresses of variables."""


def code(*, reads_all: bool = False, reads_table: bool = False, name: str = "kernel") -> bytes:
    more = [*([UNSET, store(6, 5)] if reads_all else []), *([TABLE] if reads_table else [])]
    body = [POINTER, COUNT, store(2, 5), *more, EXIT]
    return cubin(name, [(0, 8), (8, 16)], body)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    (folder / "main.c").write_text(f"#include <stdlib.h>\n{MAIN}")
    room = NATIVE / "watch"
    sources = [str(room / "parameters" / f"{name}.c") for name in ("code_image", "containers")]
    sources += [str(source) for name in ("machine", "values") for source in sorted((room / name).glob("*.c"))]
    subprocess.run(
        ["gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
         "-fsanitize=address,undefined", "-fno-sanitize-recover=all", f"-I{folder}", *includes_of("watch/parameters"),
         "-isystem", str(cuda_include()), "-o", str(folder / "reader"), str(folder / "main.c"), *sources, "-lzstd",
         "-llz4"],
        check=True,
    )  # fmt: skip
    return folder / "reader"


def answer(reader: Path, folder: Path, image: bytes, place: int | str = UNREAD, *options: str) -> str:
    (folder / "code").write_bytes(image)
    done = subprocess.run([reader, folder / "code", str(place), *options], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("compression", ["", "lz4_raw", "zstd"])
@pytest.mark.parametrize("options", [(), ("wrapped",)])
def test_containers_tell_what_their_machine_code_does(
    reader: Path, tmp_path: Path, compression: str, options: tuple[str, ...]
) -> None:
    image = container([(90, code(), compression)])
    assert answer(reader, tmp_path, image, UNREAD, *options) == "ignored"
    assert answer(reader, tmp_path, image, READ, *options) == "read"


def test_plain_machine_code_tells_it_too(reader: Path, tmp_path: Path) -> None:
    assert answer(reader, tmp_path, code()) == "ignored"
    assert answer(reader, tmp_path, code(reads_all=True)) == "read"


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ([(80, code()), (90, code())], "uses none"),
        ([(80, code(reads_table=True)), (90, code())], "may use some"),
        ([(90, code()), (100, code(reads_table=True))], "uses none"),
        ([(80, code(name="other")), (90, code())], "may use some"),
        ([], "may use some"),
    ],
)
def test_a_kernel_uses_no_variables_that_reads_no_table_of_addresses(
    reader: Path, tmp_path: Path, codes: list[tuple[int, bytes]], said: str
) -> None:
    image = container([(architecture, one, "zstd") for architecture, one in codes])
    assert answer(reader, tmp_path, image, "variables") == said


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ([(80, code()), (90, code())], "ignored"),
        ([(80, code()), (90, code(reads_all=True))], "read"),  # the driver chooses one for each GPU
        ([(80, code(reads_all=True)), (90, code())], "read"),
        ([(80, code(name="other")), (90, code())], "read"),  # one of them may lie elsewhere
        ([(90, code()), (100, code(reads_all=True))], "ignored"),  # no GPU here runs that
        ([(75, code(reads_all=True)), (89, code(reads_all=True)), (86, code())], "ignored"),
        ([(75, code()), (100, code())], "read"),  # the driver compiles PTX in their place
        ([], "read"),
    ],
)
def test_all_that_some_gpu_may_run_counts(
    reader: Path, tmp_path: Path, codes: list[tuple[int, bytes]], said: str
) -> None:
    image = container([(architecture, one, "zstd") for architecture, one in codes])
    assert answer(reader, tmp_path, image) == said


def test_nothing_is_known_where_the_driver_compiles(
    reader: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_FORCE_PTX_JIT", "1")
    assert answer(reader, tmp_path, container([(90, code(), "zstd")])) == "read"


@pytest.mark.parametrize("compression", ["", "lz4_raw", "zstd"])
def test_nothing_is_known_of_damaged_containers(reader: Path, tmp_path: Path, compression: str) -> None:
    whole = container([(90, code(), compression)])
    for end in range(0, len(whole), 37):
        assert answer(reader, tmp_path, whole[:end]) == "read"
    for place, value in ((8, 1 << 40), (24, 1 << 40), (20, 1 << 31), (16 + 56, 1 << 50), (16 + 16, 1 << 31)):
        damaged = bytearray(whole)
        struct.pack_into("<Q", damaged, place, value)
        answer(reader, tmp_path, bytes(damaged))  # ends well
