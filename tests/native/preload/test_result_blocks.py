"""Heap blocks for results: which get pages of their own, and what happens when they are freed."""

from __future__ import annotations

import ctypes
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests.native.layers import NATIVE

PAGE, LARGE = 4096, 4 * 4096
HERE, ELSEWHERE = 0x5000, 0x6000
"""Places in the program that request blocks."""

TOLD = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)


@pytest.fixture
def native(tmp_path: Path) -> ctypes.CDLL:
    """Loaded anew for each test: nothing is left of another one's blocks."""
    library = tmp_path / "libresult_blocks.so"
    subprocess.run(
        [
            "gcc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-D_GNU_SOURCE",
            "-fsanitize=undefined", "-fno-sanitize-recover=all", "-Wl,-Bsymbolic", "-o", str(library),
            str(NATIVE / "preload/driver_blocks.c"), str(NATIVE / "preload/result_blocks.c"),
        ],
        check=True,
    )  # fmt: skip
    loaded = ctypes.CDLL(str(library))
    loaded.ffm_result_block.argtypes = ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p
    loaded.ffm_result_blocks_note.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
    loaded.ffm_result_blocks_beside.argtypes = loaded.ffm_result_blocks_used.argtypes = (ctypes.c_uint64,)
    loaded.malloc_usable_size.argtypes = loaded.free.argtypes = (ctypes.c_void_p,)
    loaded.ffm_result_block.restype = ctypes.c_void_p
    loaded.malloc_usable_size.restype = ctypes.c_size_t
    return loaded


def learn(native: ctypes.CDLL, size: int, caller: int = HERE, address: int = 0x10010) -> None:
    """Let the program's allocator give out a block, and the program work beside the result in it."""
    native.ffm_result_blocks_note(address, size, caller)
    native.ffm_result_blocks_beside(address)


def take(native: ctypes.CDLL, size: int, caller: int = HERE, alignment: int = 16) -> int | None:
    found: int | None = native.ffm_result_block(alignment, size, caller)
    return found


def test_blocks_come_from_the_program_s_allocator_until_one_is_in_the_way(native: ctypes.CDLL) -> None:
    native.ffm_result_blocks_note(0x10010, 16, HERE)
    native.ffm_result_blocks_used(0x10010)
    native.ffm_result_blocks_beside(0x20010)  # an address where no block is known to begin
    assert take(native, 16) is None


@pytest.mark.parametrize("size", [0, 1, 16, PAGE, PAGE + 1, LARGE - 1])
def test_the_next_blocks_of_its_kind_share_no_page(native: ctypes.CDLL, size: int) -> None:
    learn(native, size)
    blocks = [take(native, size) for _ in range(40)]
    assert all(block is not None and block % PAGE == 0 for block in blocks)
    starts = sorted(block or 0 for block in blocks)
    assert all(second - first >= max(size, PAGE) for first, second in pairwise(starts))
    for block in blocks:
        assert native.malloc_usable_size(block) >= size


def test_other_places_and_sizes_are_other_kinds(native: ctypes.CDLL) -> None:
    learn(native, 16)
    assert take(native, 16, ELSEWHERE) is None
    assert take(native, 32) is None
    assert take(native, 16) is not None


def test_what_cannot_be_aligned_or_is_large_comes_from_the_program_s_allocator(native: ctypes.CDLL) -> None:
    learn(native, 16)
    learn(native, LARGE)
    assert take(native, 16, alignment=2 * PAGE) is None
    assert take(native, LARGE) is None
    assert take(native, 16, alignment=PAGE) is not None


def test_a_kind_with_few_results_is_given_up(native: ctypes.CDLL) -> None:
    learn(native, 16)
    given = 0
    while take(native, 16) is not None:
        given += 1
    assert 0 < given < 1000


def test_a_kind_whose_blocks_hold_results_goes_on(native: ctypes.CDLL) -> None:
    learn(native, 16)
    for _ in range(1000):
        block = take(native, 16)
        assert block is not None
        native.ffm_result_blocks_used(block)


def test_the_blocks_in_use_take_a_limited_number_of_pages(native: ctypes.CDLL) -> None:
    learn(native, 16)
    held = []
    while (block := take(native, 16)) is not None:
        native.ffm_result_blocks_used(block)
        held.append(block)
    assert 1000 < len(held) < 100_000
    native.free(held[7])
    assert take(native, 16) == held[7]
    assert take(native, 16) is None


def test_who_watches_is_told_of_a_block_that_is_freed_while_it_is_whole(native: ctypes.CDLL) -> None:
    learn(native, 16)
    seen = []
    watcher = TOLD(lambda block, size: seen.append((block, size, ctypes.string_at(block, 16))))
    native.ffm_result_blocks_tell(watcher)
    block = take(native, 16)
    assert block is not None
    ctypes.memset(block, 7, 16)
    native.free(block)
    assert seen == [(block, PAGE, b"\x07" * 16)]


def test_blocks_that_an_earlier_run_transferred_get_their_pages_at_once(native: ctypes.CDLL) -> None:
    native.ffm_result_blocks_expect.argtypes = ctypes.c_void_p, ctypes.c_uint64
    native.ffm_result_blocks_expect(HERE, 2000)
    assert take(native, 2000, ELSEWHERE) is None
    assert take(native, 2001) is None
    block = take(native, 2000)
    assert block is not None
    assert block % PAGE == 0
