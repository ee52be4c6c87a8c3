"""The driver's heap blocks: aligned, apart from each other, and kept until they are freed."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.native.layers import NATIVE

DRIVER = 0x1000
"""An address in the driver's code."""

PROGRAM = 0x3000

LARGEST = 1 << 14

TAKE = st.tuples(st.just("take"), st.integers(0, 14), st.integers(0, LARGEST))
RESIZE = st.tuples(st.just("resize"), st.integers(0, 20), st.integers(1, LARGEST))
FREE = st.tuples(st.just("free"), st.integers(0, 20), st.just(0))


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    library: Path = tmp_path_factory.mktemp("driver_blocks") / "libdriver_blocks.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-D_GNU_SOURCE",
            "-fsanitize=undefined", "-fno-sanitize-recover=all", "-Wl,-Bsymbolic", "-o", str(library),
            str(NATIVE / "preload/driver_blocks.c"),
        ],
        check=True,
    )  # fmt: skip
    loaded = ctypes.CDLL(str(library))
    loaded.ffm_driver_blocks_code.argtypes = ctypes.c_uint64, ctypes.c_uint64
    loaded.ffm_driver_block.argtypes = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p
    loaded.realloc.argtypes = ctypes.c_void_p, ctypes.c_size_t
    loaded.malloc_usable_size.argtypes = loaded.free.argtypes = (ctypes.c_void_p,)
    loaded.ffm_driver_block.restype = loaded.realloc.restype = ctypes.c_void_p
    loaded.malloc_usable_size.restype = ctypes.c_size_t
    loaded.ffm_driver_blocks_code(DRIVER, DRIVER + 0x1000)
    return loaded


@given(st.lists(st.one_of(TAKE, TAKE, RESIZE, FREE), max_size=80))
def test_blocks_keep_what_is_written_until_they_are_freed(
    native: ctypes.CDLL, steps: list[tuple[str, int, int]]
) -> None:
    held: list[tuple[int, int, int]] = []  # the address, the bytes, and what all of them are
    for number, (what, place, size) in enumerate(steps):
        mark = number % 256
        if what == "take":
            block = native.ffm_driver_block(1 << place, size, DRIVER)
            assert block is not None and block % (1 << place) == 0
            ctypes.memset(block, mark, size)
            held.append((block, size, mark))
        elif held:
            block, size_before, mark = held.pop(place % len(held))
            assert ctypes.string_at(block, size_before) == bytes([mark]) * size_before
            if what == "free":
                native.free(block)
                continue
            moved = native.realloc(block, size)
            kept = min(size, size_before)
            assert ctypes.string_at(moved, kept) == bytes([mark]) * kept
            ctypes.memset(moved, mark, size)
            held.append((moved, size, mark))
    for block, size, mark in held:
        assert native.malloc_usable_size(block) >= size
        assert ctypes.string_at(block, size) == bytes([mark]) * size
        native.free(block)


@given(st.integers(1, LARGEST))
def test_little_of_a_block_is_left_over(native: ctypes.CDLL, size: int) -> None:
    block = native.ffm_driver_block(1, size, DRIVER)
    assert size <= native.malloc_usable_size(block) <= max(size * 5 // 4, size + 15)
    native.free(block)


def test_a_block_that_was_freed_is_used_again(native: ctypes.CDLL) -> None:
    block = native.ffm_driver_block(1, 100, DRIVER)
    native.free(block)
    assert native.ffm_driver_block(1, 100, DRIVER) == block
    native.free(block)


def test_other_code_and_large_blocks_are_left_to_the_program_s_allocator(native: ctypes.CDLL) -> None:
    assert native.ffm_driver_block(1, 100, PROGRAM) is None
    assert native.ffm_driver_block(1, LARGEST + 1, DRIVER) is None


PENDING_MESSAGE = """
#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>

extern void __libc_free(void *start);

static int begun;

void free(void *start)
{
    if (begun && start != NULL)
        malloc_usable_size(start);
    __libc_free(start);
}

int main(void)
{
    void *block = malloc(8);
    dlsym(RTLD_DEFAULT, "no_such_function");
    begun = 1;
    return malloc_usable_size(block) < 8;
}
"""


def test_a_lookup_may_free_a_message_that_nobody_asked_for(tmp_path: Path) -> None:
    """The first lookup of the allocator frees what the linker said before, and that asks for the size of the block."""
    (tmp_path / "program.c").write_text(PENDING_MESSAGE, encoding="utf-8")
    library, program = tmp_path / "libdriver_blocks.so", tmp_path / "program"
    options = ["gcc", "-std=c11", "-O2", "-D_GNU_SOURCE", "-fPIC"]
    subprocess.run([*options, "-shared", "-o", library, NATIVE / "preload/driver_blocks.c"], check=True)
    subprocess.run([*options, "-fno-builtin", "-o", program, tmp_path / "program.c"], check=True)
    subprocess.run([program], check=True, env={"LD_PRELOAD": str(library)})
