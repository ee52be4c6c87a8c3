"""Which block of host memory contains an address: the collector's search tree against a plain list. And which blocks
are remembered at all."""

from __future__ import annotations

import ctypes
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.native.layers import NATIVE, includes_of
from tests.native.loading import LOADED_OFTEN, loaded_anew

HERE = Path(__file__).parent
RECORDED = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32)
MALLOC = 0
"""An `FFM_ALLOCATOR_…`; which one makes no difference here."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collector's host_blocks.c, alone."""
    path = tmp_path_factory.mktemp("host-blocks") / "libblocks.so"
    sources = [
        NATIVE / "collector" / "host_blocks.c",
        NATIVE / "base" / "intervals.c",
        HERE / "host_blocks_records.c",
    ]
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared",
            LOADED_OFTEN, "-fsanitize=undefined", "-fno-sanitize-recover=all", *includes_of("collector"),
            "-o", str(path), *map(str, sources),
        ],
        check=True,
    )  # fmt: skip
    return path


class Blocks:
    """The collector's blocks, each known by the stack of its allocation."""

    def __init__(self, library: Path) -> None:
        self._native = loaded_anew(library)
        self._by_number: dict[int, int] = {}
        self._used: list[int] = []
        self._users = 1
        on_block, on_use = RECORDED(self._record_block), RECORDED(self._record_use)
        self._kept = (on_block, on_use)
        for name, function in zip(("block_is_recorded", "use_is_recorded"), self._kept, strict=True):
            ctypes.c_void_p.in_dll(self._native, name).value = ctypes.cast(function, ctypes.c_void_p).value

    def _record_block(self, number: int, stack: int) -> None:
        self._by_number[number] = stack

    def _record_use(self, number: int, stack: int) -> None:
        assert stack == self._users
        self._used.append(self._by_number[number])

    def allocate(self, start: int, size: int, stack: int) -> None:
        frames = (ctypes.c_uint64 * 1)(stack)
        self._native.ffm_host_blocks_allocated(ctypes.c_uint64(start), ctypes.c_uint64(size), MALLOC, frames, 1)

    def free(self, start: int) -> None:
        self._native.ffm_host_blocks_forget(ctypes.c_uint64(start), ctypes.byref(ctypes.c_uint32()))

    def around(self, address: int) -> int | None:
        """Return the stack of the block that a transfer from a new place uses."""
        self._users += 1
        return self.newly_used(address)

    def newly_used(self, address: int) -> int | None:
        """Return that of one from the last place; `None` also if it was recorded before."""
        self._used.clear()
        self._native.ffm_host_blocks_used(ctypes.c_uint64(address), self._users)
        assert len(self._used) <= 1
        return self._used[0] if self._used else None


@dataclass
class Plain:
    """The same, by searching through all blocks."""

    blocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Size and stack by start; the latest allocation comes last."""

    def allocate(self, start: int, size: int, stack: int) -> None:
        self.blocks = {at: block for at, block in self.blocks.items() if not start <= at < start + size}
        self.blocks[start] = (size, stack)

    def free(self, start: int) -> None:
        self.blocks.pop(start, None)

    def around(self, address: int) -> int | None:
        for start, (size, stack) in reversed(self.blocks.items()):
            if start <= address < start + size:
                return stack
        return None


def live_as(steps: int, place: Callable[[random.Random], tuple[int, int]], blocks: Blocks, seed: int) -> None:
    """Allocate, free and use at random places; the blocks and the plain list must agree at each use."""
    chance, plain = random.Random(seed), Plain()
    for stack in range(1, steps + 1):
        start, size = place(chance)
        what = chance.random()
        if what < 0.4:
            blocks.allocate(start, size, stack)
            plain.allocate(start, size, stack)
        elif what < 0.55:
            known = chance.choice(list(plain.blocks)) if plain.blocks and chance.random() < 0.8 else start
            blocks.free(known)
            plain.free(known)
        near = chance.choice([start - 1, start, start + size - 1, start + size, start + chance.randrange(size)])
        assert blocks.around(near) == plain.around(near)


@pytest.mark.parametrize("seed", range(5))
def test_blocks_that_were_freed_unseen_lie_below_later_ones(library: Path, seed: int) -> None:
    def anywhere(chance: random.Random) -> tuple[int, int]:
        return 16 * chance.randrange(1, 4096), 16 * chance.randrange(1, 2 ** chance.randrange(1, 11))

    live_as(4000, anywhere, Blocks(library), seed)


@pytest.mark.parametrize("seed", range(2))
def test_small_blocks_lie_in_the_pool_that_was_mapped_for_them(library: Path, seed: int) -> None:
    blocks = Blocks(library)

    def in_pools(chance: random.Random) -> tuple[int, int]:
        return (1 << 40) + 4096 * chance.randrange(1 << 16), 4096

    live_as(3000, in_pools, blocks, seed)
    blocks.allocate(1 << 40, 4096 << 16, 10_000)
    blocks.allocate((1 << 40) + 8192, 4096, 10_001)
    assert blocks.around((1 << 40) + 8191) == 10_000
    assert blocks.around((1 << 40) + 8192) == 10_001
    blocks.free((1 << 40) + 8192)
    assert blocks.around((1 << 40) + 8192) == 10_000


def test_blocks_of_any_size_are_found_among_many_in_order(library: Path) -> None:
    """Ascending addresses are the worst order for a tree that is not balanced."""
    blocks = Blocks(library)
    blocks.allocate(1 << 46, 1 << 45, 1)
    for number in range(2, 20_002):
        blocks.allocate(4096 * number, 2048, number)
    for number in range(2, 20_002, 97):
        assert blocks.around(4096 * number + 2047) == number
        assert blocks.around(4096 * number + 2048) is None
    assert blocks.around((1 << 46) + (1 << 45) - 1) == 1
    assert blocks.around(0x7FFD_0000_0000) is None


def test_a_place_is_recorded_once_with_each_block_that_it_uses(library: Path) -> None:
    blocks = Blocks(library)
    for stack in (1, 2):
        blocks.allocate(1 << 20, 4096, stack)
        assert blocks.newly_used((1 << 20) + 64) == stack
        assert [blocks.newly_used((1 << 20) + place) for place in (64, 128, 64)] == [None] * 3
        blocks.free(1 << 20)
        assert blocks.newly_used((1 << 20) + 64) is None


def test_memory_that_the_driver_allocates_is_not_the_programs(tmp_path: Path) -> None:
    program = tmp_path / "driver_memory"
    sources = [
        *(NATIVE / "collector" / f"{part}.c" for part in ("allocators", "host_blocks")),
        *(NATIVE / "base" / f"{part}.c" for part in ("instruments", "intervals")),
        NATIVE / "watch" / "programs" / "foreign.c",
        *(HERE / f"{part}.c" for part in ("host_blocks_records", "driver_memory")),
    ]
    subprocess.run(
        [
            "gcc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fno-builtin",
            "-fno-optimize-sibling-calls", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
            *includes_of("collector"), "-o", str(program), *map(str, sources), "-lunwind", "-lpthread",
        ],
        check=True,
    )  # fmt: skip
    run = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
